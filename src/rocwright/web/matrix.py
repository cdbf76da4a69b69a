"""The page of the matrix: only the stacks that changed are drawn anew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

from starlette.requests import Request
from starlette.responses import Response

from rocbase.errors import ExplainedError
from rocbase.files.atomic import sha256_bytes
from rocwright.cycle.run import last_cycle
from rocwright.diagnosis.masking import masked
from rocwright.records.model import Cell
from rocwright.records.standings import standing, standings
from rocwright.web.cycling import Cycling
from rocwright.web.failures import Begin, broken
from rocwright.web.render import render
from rocwright.web.running import Now
from rocwright.web.site import Site, asked

WHO, NOW = "<!--who-->", "<!--now-->"
"""Where the page says who looks at it, and what runs."""

OLD_SECONDS = 300.0
"""What says how long ago something was is drawn anew after so long, while the old is still given."""

MOST_KEPT = 50
"""Pages of single stacks that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A page before, between and after the places of who looks and of what runs, its digest, when it was
    drawn, of which change of the records; and each stack of it, with the cells that it was drawn from."""

    parts: tuple[bytes, bytes, bytes]
    tag: str
    at: float
    counter: int
    stacks: dict[str, tuple[list[Cell], str]]


@dataclass(slots=True)
class Matrix:
    """The matrix of a site, of all stacks or one; the same bytes for all but for who they are."""

    site: Site
    cycling: Cycling | None = None
    clock: Callable[[], float] = time.monotonic
    _now: Now = field(init=False)
    _begins: dict[str, dict[str, Begin]] = field(default_factory=dict)
    _kept: dict[str, Drawn] = field(default_factory=dict)
    _drawing: set[asyncio.Task[Drawn]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._now = Now(self.site, self.cycling, self.clock)

    async def page(self, request: Request) -> Response:
        """Every stack, GPU and base."""
        self.site.need(request, "read")
        stack, session = request.query_params.get("stack", "")[:100], self.site.session(request)
        drawn, (tag, runs) = await self._drawn(stack)
        headers = {
            "etag": f'"{drawn.tag}-{tag}-{session.secret[:16] if session else ""}"',
            "cache-control": "no-cache",
        }
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        who = render("who.html", session=session, here="/").encode()
        before, between, after = drawn.parts
        return Response(before + who + between + runs + after, headers=headers, media_type="text/html")

    async def _drawn(self, stack: str) -> tuple[Drawn, tuple[str, bytes]]:
        """The page as it is on record, and what runs; as it was, where the records do not answer for a
        moment."""
        kept = self._kept.get(stack)
        try:
            any_, counter = await asked(self.site.records.changed)
            if kept is None or kept.counter != counter:
                kept = await self._draw(stack, counter, kept.stacks if kept else {})
            runs = await self._now.part(any_)
        except ExplainedError:
            if kept is None:
                raise
            return kept, ("", b"")
        if self.clock() - kept.at > OLD_SECONDS and not self._drawing:
            task = asyncio.ensure_future(self._draw(stack, counter, {}))
            self._drawing.add(task)
            task.add_done_callback(self._drawn_anew)
        return kept, runs

    def _drawn_anew(self, task: asyncio.Task[Drawn]) -> None:
        self._drawing.discard(task)
        # the records did not answer: the next who asks tries again
        task.cancelled() or task.exception()

    async def _draw(self, stack: str, counter: int, known: dict[str, tuple[list[Cell], str]]) -> Drawn:
        made = await asked(lambda: self._render(stack, counter, known))
        if len(self._kept) > MOST_KEPT:
            self._kept.clear()
            self._begins.clear()
        self._kept[stack] = made
        return made

    def _render(self, stack: str, counter: int, known: dict[str, tuple[list[Cell], str]]) -> Drawn:
        order = self.site.order()
        stacks, every = {}, self.site.records.matrix(stack=stack)
        for name, group in groupby(every, key=lambda one: one.stack):
            cells = list(group)
            before = known.get(name)
            same = before is not None and before[0] == cells
            stacks[name] = before if before and same else (cells, _section(cells, order))
        tables = "".join(section for _, section in stacks.values())
        told = last_cycle(self.site.folder, self.site.home)
        body = render(
            "matrix.html",
            session=None,
            here="/",
            tables=tables,
            wanted=stack,
            count=len(every),
            bad=sum(standing(one) == "failing" for one in every),
            standings=standings(every),
            broken=broken(self.site.records, every, told, self._begins.setdefault(stack, {})),
            gpus=sorted({one.gpu for one in every}, key=by_number),
            linked=True,
            mask=lambda text: masked(text, self.site.hidden),
        )
        head, _, rest = body.partition(WHO)
        top, _, foot = rest.partition(NOW)
        return Drawn(
            parts=(head.encode(), top.encode(), foot.encode()),
            tag=sha256_bytes(body.encode())[:32],
            at=self.clock(),
            counter=counter,
            stacks=stacks,
        )


def _section(cells: Iterable[Cell], order: Sequence[str]) -> str:
    return render("matrix_tables.html", stacks=by_stack(cells), linked=True, highest=partial(highest, order))


def highest(order: Sequence[str], channels: Collection[str]) -> str:
    """The last of these channels in their order, "" where there is none."""
    return max(channels, key=lambda name: order.index(name) if name in order else -1, default="")


def by_number(gpu: str) -> tuple[int, str]:
    """An order of GPUs in which gfx900 comes before gfx1030."""
    return len(gpu), gpu


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
        rows.sort(key=lambda row: (by_number(row[0]), row[1]))
        found.append((stack, bases, rows))
    return found
