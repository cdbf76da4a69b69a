"""The page of the matrix: only the stacks that changed are drawn anew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby

from starlette.requests import Request
from starlette.responses import Response

from rocwright.errors import RocwrightError
from rocwright.files import sha256_bytes
from rocwright.records.model import Cell
from rocwright.web.render import render
from rocwright.web.site import Site, asked

WHO = "<!--who-->"
"""Where the page says who looks at it."""

OLD_SECONDS = 300.0
"""What says how long ago something was is drawn anew after so long, while the old is still given."""

MOST_KEPT = 50
"""Pages of single stacks that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A page before and after the place of who looks, its digest, when it was drawn, of which change of the
    records; and each stack of it, with the cells that it was drawn from."""

    before: bytes
    after: bytes
    tag: str
    at: float
    counter: int
    stacks: dict[str, tuple[list[Cell], str]]


@dataclass(slots=True)
class Matrix:
    """The matrix of a site, of all stacks or one; the same bytes for all but for who they are."""

    site: Site
    clock: Callable[[], float] = time.monotonic
    _kept: dict[str, Drawn] = field(default_factory=dict)
    _drawing: set[asyncio.Task[Drawn]] = field(default_factory=set)

    async def page(self, request: Request) -> Response:
        """Every stack, GPU and base."""
        self.site.need(request, "read")
        stack, session = request.query_params.get("stack", "")[:100], self.site.session(request)
        drawn = await self._drawn(stack)
        headers = {
            "etag": f'"{drawn.tag}-{session.secret[:16] if session else ""}"',
            "cache-control": "no-cache",
        }
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        who = render("who.html", session=session, here="/").encode()
        return Response(drawn.before + who + drawn.after, headers=headers, media_type="text/html")

    async def _drawn(self, stack: str) -> Drawn:
        """The page as it is on record; as it was, where the records do not answer for a moment."""
        kept = self._kept.get(stack)
        try:
            counter = (await asked(self.site.records.changed))[1]
            if kept is None or kept.counter != counter:
                return await self._draw(stack, counter, kept.stacks if kept else {})
        except RocwrightError:
            if kept is None:
                raise
            return kept
        if self.clock() - kept.at > OLD_SECONDS and not self._drawing:
            task = asyncio.ensure_future(self._draw(stack, counter, {}))
            self._drawing.add(task)
            task.add_done_callback(self._drawn_anew)
        return kept

    def _drawn_anew(self, task: asyncio.Task[Drawn]) -> None:
        self._drawing.discard(task)
        # the records did not answer: the next who asks tries again
        task.cancelled() or task.exception()

    async def _draw(self, stack: str, counter: int, known: dict[str, tuple[list[Cell], str]]) -> Drawn:
        made = await asked(lambda: self._render(stack, counter, known))
        if len(self._kept) > MOST_KEPT:
            self._kept.clear()
        self._kept[stack] = made
        return made

    def _render(self, stack: str, counter: int, known: dict[str, tuple[list[Cell], str]]) -> Drawn:
        stacks = {}
        for name, group in groupby(self.site.records.matrix(stack=stack), key=lambda one: one.stack):
            cells = list(group)
            before = known.get(name)
            same = before is not None and before[0] == cells
            stacks[name] = before if before and same else (cells, _section(cells))
        tables = "".join(section for _, section in stacks.values())
        body = render("matrix.html", session=None, here="/", tables=tables, wanted=stack)
        before_who, _, after = body.partition(WHO)
        return Drawn(
            before=before_who.encode(),
            after=after.encode(),
            tag=sha256_bytes(body.encode())[:32],
            at=self.clock(),
            counter=counter,
            stacks=stacks,
        )


def _section(cells: Iterable[Cell]) -> str:
    return render("matrix_tables.html", stacks=by_stack(cells), linked=True)


def by_stack(
    cells: Iterable[Cell],
) -> list[tuple[str, list[str], list[tuple[str, str, dict[str, Cell]]]]]:
    """Stacks with their bases, and for each GPU and variant the cells by base."""
    found = []
    for stack, group in groupby(cells, key=lambda one: one.stack):
        mine = list(group)
        bases = sorted({one.base for one in mine})
        rows = [
            (*key, {one.base: one for one in row})
            for key, row in groupby(mine, key=lambda one: (one.gpu, one.variant))
        ]
        found.append((stack, bases, rows))
    return found
