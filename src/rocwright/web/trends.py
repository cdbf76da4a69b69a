"""Figures over time, and two runs side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rocbase.units import duration, size
from rocwright.plan.resolve.difference import difference
from rocwright.plan.resolve.tell_difference import tell_difference
from rocwright.records.model import BENCH, Artifact, Run, StepAt, StepRun, Which
from rocwright.web.charts import Chart, between, chart, curves_of
from rocwright.web.pages import Pages
from rocwright.web.site import asked
from rocwright.web.speeds import by_lock, speeds

# Points of one curve.
POINT_LIMIT = 400


class Trends:
    """Reads what went before; each method answers one address."""

    def __init__(self, pages: Pages) -> None:
        self.pages, self.site = pages, pages.site

    async def trends(self, request: Request) -> Response:
        """Build time, memory, compiler cache, sizes and speed of one stack, or of a GPU and a base of it."""
        self.site.need(request, "read")
        records = self.site.records
        cells = await asked(records.matrix)
        stacks = sorted({cell.stack for cell in cells})
        stack = request.query_params.get("stack", "")[:100] or (stacks[0] if stacks else "")
        gpu, base = (request.query_params.get(name, "")[:100] for name in ("gpu", "base"))
        mine = [cell for cell in cells if cell.stack == stack]
        which = Which(stack=stack, gpu=gpu, base=base, outcome="built")
        steps = await asked(lambda: records.steps(which, limit=POINT_LIMIT))
        artifacts = await asked(
            lambda: records.artifacts(Which(stack=stack, gpu=gpu, base=base), limit=POINT_LIMIT)
        )
        bench = Which(stack=stack, gpu=gpu, base=base, command=BENCH)
        benched = await asked(lambda: records.steps(bench, limit=POINT_LIMIT))
        return self.pages.page(
            request,
            "trends.html",
            stacks=stacks,
            stack=stack,
            gpu=gpu,
            base=base,
            gpus=sorted({cell.gpu for cell in mine}),
            bases=sorted({cell.base for cell in mine}),
            charts=[*figures(steps, artifacts), *speeds(benched)],
            locks=by_lock(benched),
        )

    async def compare(self, request: Request) -> Response:
        """Two runs: what differs between their locks, and what their steps took."""
        self.site.need(request, "read")
        first, second = request.query_params.get("a", "")[:80], request.query_params.get("b", "")[:80]
        runs = await asked(lambda: self.site.records.runs(limit=50, steps=False))
        if not (first and second):
            return self.pages.page(request, "compare.html", runs=runs, pair=None, lines=[], steps=[])
        pair = [await asked(lambda ident=ident: self.site.records.run(ident)) for ident in (first, second)]  # type: ignore[misc]
        old_run, new_run = pair
        if old_run is None or new_run is None:
            raise HTTPException(404, "one of the two runs is not on record")
        old, new = [await asked(partial(self.pages.lock_of, run)) for run in (old_run, new_run)]
        lines = tell_difference(difference(old, new)) if old and new else None
        return self.pages.page(
            request,
            "compare.html",
            runs=[
                *runs,
                *(compared for compared in (old_run, new_run) if compared.id not in {run.id for run in runs}),
            ],
            pair=(old_run, new_run),
            lines=lines,
            steps=side_by_side(old_run, new_run),
        )


def side_by_side(old_run: Run, new_run: Run) -> list[tuple[str, StepRun | None, StepRun | None]]:
    """The steps of two runs by name."""
    old, new = ({step.name: step for step in run.steps} for run in (old_run, new_run))
    return [(name, old.get(name), new.get(name)) for name in dict.fromkeys((*old, *new))]


def figures(steps: Sequence[StepAt], artifacts: Sequence[Artifact]) -> list[Chart]:
    """Charts of what main steps took, and of how large files became."""
    main = [attempt for attempt in steps if attempt.step.seconds and "/" not in attempt.step.name]
    built = [attempt for attempt in main if attempt.step.outcome == "built"]
    series: tuple[tuple[str, Callable[[StepAt], float | None], Callable[[float], str]], ...] = (
        ("Time of each component", lambda attempt: attempt.step.seconds, duration),
        ("Memory, at most", lambda attempt: attempt.step.peak_memory, size),
        (
            "From the compiler cache",
            lambda attempt: attempt.step.cached * 100 if attempt.step.compiler_cache else None,
            lambda value: f"{value:.0f} %",
        ),
    )
    charts = [
        chart(
            title, curves_of(_measurements(built, measure)), between([attempt.at for attempt in built]), unit
        )
        for title, measure, unit in series
    ]
    rows = [
        (f"{artifact.component} {', '.join(artifact.gpu)}", artifact.at, float(artifact.size))
        for artifact in artifacts
    ]
    ends = between([artifact.at for artifact in artifacts])
    charts.append(chart("Size of what is built, by GPU", curves_of(rows), ends, size))
    return [drawn for drawn in charts if drawn is not None]


def _measurements(
    steps: Iterable[StepAt], measure: Callable[[StepAt], float | None]
) -> Iterator[tuple[str, str, float]]:
    """What was measured of each; what was not is no zero."""
    for attempt in steps:
        value = measure(attempt)
        if value is not None:
            yield attempt.step.name, attempt.at, value
