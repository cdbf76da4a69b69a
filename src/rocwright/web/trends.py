"""Figures over time, and two runs side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rocbase.units import duration, size
from rocwright.records.model import BENCH, Artifact, Run, StepAt, StepRun, Which
from rocwright.resolve.difference import difference
from rocwright.resolve.tell_difference import tell_difference
from rocwright.web.charts import Chart, between, chart, curves_of
from rocwright.web.pages import Pages
from rocwright.web.site import asked
from rocwright.web.speeds import by_lock, speeds

MOST = 400
"""Points of one curve."""


class Trends:
    """Reads what went before; each method answers one address."""

    def __init__(self, pages: Pages) -> None:
        self.pages, self.site = pages, pages.site

    async def trends(self, request: Request) -> Response:
        """Build time, memory, compiler cache, sizes and speed of one stack, or of a GPU and a base of it."""
        self.site.need(request, "read")
        records = self.site.records
        cells = await asked(records.matrix)
        stacks = sorted({one.stack for one in cells})
        stack = request.query_params.get("stack", "")[:100] or (stacks[0] if stacks else "")
        gpu, base = (request.query_params.get(name, "")[:100] for name in ("gpu", "base"))
        mine = [one for one in cells if one.stack == stack]
        which = Which(stack=stack, gpu=gpu, base=base, outcome="built")
        steps = await asked(lambda: records.steps(which, limit=MOST))
        made = await asked(lambda: records.artifacts(Which(stack=stack, gpu=gpu, base=base), limit=MOST))
        bench = Which(stack=stack, gpu=gpu, base=base, command=BENCH)
        benched = await asked(lambda: records.steps(bench, limit=MOST))
        return self.pages.page(
            request,
            "trends.html",
            stacks=stacks,
            stack=stack,
            gpu=gpu,
            base=base,
            gpus=sorted({one.gpu for one in mine}),
            bases=sorted({one.base for one in mine}),
            charts=[*figures(steps, made), *speeds(benched)],
            locks=by_lock(benched),
        )

    async def compare(self, request: Request) -> Response:
        """Two runs: what differs between their locks, and what their steps took."""
        self.site.need(request, "read")
        one, two = request.query_params.get("a", "")[:80], request.query_params.get("b", "")[:80]
        runs = await asked(lambda: self.site.records.runs(limit=50, steps=False))
        if not (one and two):
            return self.pages.page(request, "compare.html", runs=runs, pair=None, lines=[], steps=[])
        pair = [await asked(lambda ident=ident: self.site.records.run(ident)) for ident in (one, two)]  # type: ignore[misc]
        before, after = pair
        if before is None or after is None:
            raise HTTPException(404, "one of the two runs is not on record")
        old, new = [await asked(partial(self.pages.lock_of, run)) for run in (before, after)]
        lines = tell_difference(difference(old, new)) if old and new else None
        return self.pages.page(
            request,
            "compare.html",
            runs=[*runs, *(one for one in (before, after) if one.id not in {run.id for run in runs})],
            pair=(before, after),
            lines=lines,
            steps=side_by_side(before, after),
        )


def side_by_side(before: Run, after: Run) -> list[tuple[str, StepRun | None, StepRun | None]]:
    """The steps of two runs by name."""
    old, new = ({one.name: one for one in run.steps} for run in (before, after))
    return [(name, old.get(name), new.get(name)) for name in dict.fromkeys((*old, *new))]


def figures(steps: Sequence[StepAt], made: Sequence[Artifact]) -> list[Chart]:
    """Charts of what main steps took, and of how large files became."""
    main = [one for one in steps if one.step.seconds and "/" not in one.step.name]
    built = [one for one in main if one.step.outcome == "built"]
    told: tuple[tuple[str, Callable[[StepAt], float | None], Callable[[float], str]], ...] = (
        ("Time of each component", lambda one: one.step.seconds, duration),
        ("Memory, at most", lambda one: one.step.peak_memory, size),
        (
            "From the compiler cache",
            lambda one: one.step.cached * 100 if one.step.compiler_cache else None,
            lambda value: f"{value:.0f} %",
        ),
    )
    found = [
        chart(title, curves_of(_told(built, of)), between([one.at for one in built]), unit)
        for title, of, unit in told
    ]
    rows = [(f"{one.component} {', '.join(one.gpu)}", one.at, float(one.size)) for one in made]
    ends = between([one.at for one in made])
    found.append(chart("Size of what is built, by GPU", curves_of(rows), ends, size))
    return [one for one in found if one is not None]


def _told(steps: Iterable[StepAt], of: Callable[[StepAt], float | None]) -> Iterator[tuple[str, str, float]]:
    """What was measured of each; what was not is no zero."""
    for one in steps:
        value = of(one)
        if value is not None:
            yield one.step.name, one.at, value
