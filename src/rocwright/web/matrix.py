"""The page of the matrix: only the stacks that changed are drawn anew."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

from starlette.requests import Request
from starlette.responses import Response

from rocbase.errors import ExplainedError, InputError
from rocbase.files.atomic import sha256_bytes
from rocwright.diagnosis.masking import masked
from rocwright.follow.cycle.run import last_cycle
from rocwright.records.model import Cell
from rocwright.records.standings import standing, standings
from rocwright.web.cycling import Cycling
from rocwright.web.failures import Begin, broken
from rocwright.web.render import render
from rocwright.web.running import Now
from rocwright.web.site import Site, asked

# Where the page says who looks at it, and what runs.
WHO, NOW = "<!--who-->", "<!--now-->"

# What says how long ago something was is drawn anew after so long, while the old is still given.
OLD_SECONDS = 300.0

# Pages of single stacks that are kept.
MOST_KEPT = 50


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
    _cached: dict[str, Drawn] = field(default_factory=dict)
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
        banner = render("who.html", session=session, here="/").encode()
        head, between, foot = drawn.parts
        return Response(head + banner + between + runs + foot, headers=headers, media_type="text/html")

    async def _drawn(self, stack: str) -> tuple[Drawn, tuple[str, bytes]]:
        """The page as it is on record, and what runs; as it was, where the records do not answer for a
        moment."""
        drawn = self._cached.get(stack)
        try:
            any_, counter = await asked(self.site.records.changed)
            if drawn is None or drawn.counter != counter:
                drawn = await self._draw(stack, counter, drawn.stacks if drawn else {})
            runs = await self._now.part(any_)
        except ExplainedError:
            if drawn is None:
                raise
            return drawn, ("", b"")
        if self.clock() - drawn.at > OLD_SECONDS and not self._drawing:
            task = asyncio.ensure_future(self._draw(stack, counter, {}))
            self._drawing.add(task)
            task.add_done_callback(self._drawn_anew)
        return drawn, runs

    def _drawn_anew(self, task: asyncio.Task[Drawn]) -> None:
        self._drawing.discard(task)
        # the records did not answer: the next who asks tries again
        task.cancelled() or task.exception()

    async def _draw(self, stack: str, counter: int, cached: dict[str, tuple[list[Cell], str]]) -> Drawn:
        drawn = await asked(lambda: self._render(stack, counter, cached))
        if len(self._cached) > MOST_KEPT:
            self._cached.clear()
            self._begins.clear()
        self._cached[stack] = drawn
        return drawn

    def _render(self, stack: str, counter: int, cached: dict[str, tuple[list[Cell], str]]) -> Drawn:
        order = self.site.order()
        stacks, every = {}, with_rows(self.site.records.matrix(stack=stack), self.site, stack=stack)
        for name, group in groupby(every, key=lambda cell: cell.stack):
            cells = list(group)
            previous = cached.get(name)
            unchanged = previous is not None and previous[0] == cells
            stacks[name] = previous if previous and unchanged else (cells, _section(cells, order))
        tables = "".join(section for _, section in stacks.values())
        cycle = last_cycle(self.site.folder, self.site.home)
        body = render(
            "matrix.html",
            session=None,
            here="/",
            tables=tables,
            wanted=stack,
            count=len(every),
            bad=sum(standing(cell) == "failing" for cell in every),
            standings=standings(every),
            broken=broken(self.site.records, every, cycle, self._begins.setdefault(stack, {})),
            gpus=sorted({cell.gpu for cell in every if was_built(cell)}, key=by_number),
            linked=True,
            mask=lambda text: masked(text, self.site.hidden),
        )
        head, _, tail = body.partition(WHO)
        top, _, foot = tail.partition(NOW)
        return Drawn(
            parts=(head.encode(), top.encode(), foot.encode()),
            tag=sha256_bytes(body.encode())[:32],
            at=self.clock(),
            counter=counter,
            stacks=stacks,
        )


def with_rows(cells: Iterable[Cell], site: Site, **limits: str) -> list[Cell]:
    """Return the cells, and those of the project file's `[[matrix]]` without a run on record.

    `limits` are fields that a row must have. A file that cannot be read adds none.
    """
    every = {(cell.stack, cell.gpu, cell.base, cell.variant): cell for cell in cells}
    with contextlib.suppress(InputError):
        own = site.own()
        for request in own.rows if own and own.matrix else ():
            for gpu in request.gpu:
                cell = never_built(request.stack, gpu, request.base, request.variant)
                if all(not value or getattr(cell, name) == value for name, value in limits.items()):
                    every.setdefault(cell[:4], cell)
    return sorted(every.values(), key=lambda cell: (cell.stack, cell.gpu, cell.variant, cell.base))


def never_built(stack: str, gpu: str, base: str, variant: str = "") -> Cell:
    """Return a cell of which nothing is on record."""
    return Cell(stack, gpu, base, variant, "", "", "", "", "", "", None, {}, {})


def was_built(cell: Cell) -> bool:
    """Tell whether the cell has something to install: a rehearsal makes nothing."""
    return cell.said not in ("", "checked against source", "rehearsed")


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
    tables = []
    for stack, group in groupby(cells, key=lambda cell: cell.stack):
        mine = list(group)
        bases = sorted({cell.base for cell in mine})
        rows = [
            (*key, {cell.base: cell for cell in row})
            for key, row in groupby(mine, key=lambda cell: (cell.gpu, cell.variant))
        ]
        rows.sort(key=lambda row: (by_number(row[0]), row[1]))
        tables.append((stack, bases, rows))
    return tables
