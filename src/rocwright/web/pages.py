"""The pages that are read: what is on record, put into templates."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rocbase.units import duration, size
from rocwright.catalog.issue import Issue, the_issues
from rocwright.diagnosis.novel import MOST_WIDE
from rocwright.diagnosis.search import search
from rocwright.execution.good_log import new_lines
from rocwright.plan.resolve.files import lock_text
from rocwright.plan.resolve.folder import LOCK
from rocwright.plan.resolve.model import Lock
from rocwright.records.model import Finding, Run, Sample, StepRun, Which
from rocwright.web.broken_steps import BrokenSteps
from rocwright.web.charts import Chart, chart
from rocwright.web.eta import going, in_a_word
from rocwright.web.graph import graph, look_of
from rocwright.web.log_lines import CHUNK, phases, read_from
from rocwright.web.render import render
from rocwright.web.site import Site, asked, number

# Runs on a page.
PAGE = 50

# Bytes of a log that are shown above the error that a link leads to.
CONTEXT = 2048

# In the address of a run's page: it was looked at while it ran.
LIVE = "live"


class Pages:
    """Reads for a site; each method answers one address."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._broken = BrokenSteps(site.hidden, partial(new_lines, site.records, site.home.runs))

    def page(self, request: Request, template: str, status: int = 200, **context: object) -> Response:
        """A page for whoever asks."""
        session = self.site.session(request)
        body = render(template, session=session, here=request.url.path, **context)
        return Response(body, status, media_type="text/html")

    async def runs(self, request: Request) -> Response:
        """Runs, the newest first."""
        self.site.need(request, "read")
        asked_for = {name: request.query_params.get(name, "")[:200] for name in ("stack", "outcome", "state")}
        cursor = number(request.query_params.get("before", "0"))
        which = Which(**asked_for, before=cursor)
        runs = await asked(lambda: self.site.records.runs(which, limit=PAGE + 1, steps=False))
        next_cursor = runs[PAGE - 1].number if len(runs) > PAGE else 0
        filtered = bool(cursor or any(asked_for.values()))
        return self.page(
            request, "runs.html", runs=runs[:PAGE], more=next_cursor, asked=asked_for, filtered=filtered
        )

    async def run(self, request: Request) -> Response:
        """One run: its steps as they stand, what broke, what it used."""
        self.site.need(request, "read")
        run = await self.known_run(request)
        samples = await asked(lambda: self.site.records.samples(run.id))
        artifacts = await asked(lambda: self.site.records.artifacts(run=run.id))
        findings = await asked(lambda: self.site.records.findings(run=run.id))
        broken = await asked(lambda: self._broken.of(run, self.log_path(run, "").parent))
        lock, previous = await asked(lambda: self.lock_of(run)), await asked(lambda: self._previous_run(run))
        tries = await asked(lambda: self.site.records.runs(Which(origin=run.origin), limit=20, steps=False))
        tries = tries if run.origin.startswith("page ") and len(tries) > 1 else []
        newest = tries[0].id if tries else run.id
        # who watched it end is shown the next try, also where that one has ended meanwhile
        watched = LIVE in request.query_params and newest != run.id
        follow = newest if run.state == "ended" and (watched or self.site.working(run.origin)) else ""
        return self.page(
            request,
            "run.html",
            run=run,
            graph=graph(run.steps),
            broken=broken,
            begins=lambda offset: max(0, offset - CONTEXT),
            runs=tries,
            follow=follow and f"/runs/{follow}?{LIVE}",
            charts=charts(samples),
            artifacts=artifacts,
            findings=once(findings),
            look_of=look_of,
            in_a_word=in_a_word,
            going=going(run, await asked(self.site.records.times)) if run.state == "running" else None,
            lock=lock,
            before=previous,
        )

    async def lock(self, request: Request) -> Response:
        """The lock of a run, to be built again."""
        self.site.need(request, "read")
        run = await self.known_run(request)
        lock = await asked(lambda: self.lock_of(run))
        if lock is None:
            raise HTTPException(404, "that run has no lock on record that this version can read")
        headers = {"content-disposition": f'attachment; filename="{LOCK}"'}
        return Response(await asked(lambda: lock_text(lock)), headers=headers, media_type="application/toml")

    def lock_of(self, run: Run) -> Lock | None:
        """What a run built, where this version can read it."""
        text = self.site.records.lock(run.lock) if run.lock else None
        with contextlib.suppress(ValidationError):
            return Lock.model_validate_json(text) if text else None
        return None

    def _previous_run(self, run: Run) -> Run | None:
        """The run of that kind before it on the same cell."""
        which = Which(
            stack=run.stack,
            gpu=run.gpu[0] if run.gpu else "",
            base=run.base,
            command=run.command,
            variant=run.variant,
            before=run.number,
        )
        return next(iter(self.site.records.runs(which, limit=1, steps=False)), None)

    async def log(self, request: Request) -> Response:
        """A step's log: its end, or from a place on."""
        self.site.need(request, "read")
        run = await self.known_run(request)
        step = step_of(run, request.path_params["step"])
        start, offset = (number(request.query_params.get(name, ""), -1) for name in ("from", "at"))
        begin, log = start if start >= 0 else -CHUNK, self.log_path(run, step.log)
        part, first = await asked(lambda: read_from(log, begin, offset, self.site.hidden))
        new = await asked(lambda: self._broken.new_in(run, step))
        return self.page(
            request,
            "log.html",
            run=run,
            step=step,
            part=part,
            first=first,
            new=new,
            told={line.text.strip() for line in new.lines} if new else (),
            widest=MOST_WIDE,
            parts=list(phases(part.lines)),
            earlier=max(0, part.start - CHUNK),
            look=look_of(step),
        )

    async def issues(self, request: Request) -> Response:
        """The known issues, those that runs here met first; all of them, or those that are asked for."""
        self.site.need(request, "read")
        asked_for = {
            name: request.query_params.get(name, "")[:200] for name in ("words", "failure", "component")
        }
        met = {sighting.issue: sighting for sighting in await asked(self.site.records.met)}
        catalogued = the_issues()[0].values()
        words = asked_for.pop("words")
        matches = [issue for issue in catalogued if about(issue, **asked_for)]
        if words.strip():
            matches = [hit.issue for hit in search(words, matches)]
        else:
            matches.sort(key=lambda issue: (issue.name not in met, issue.name))
        return self.page(
            request,
            "issues.html",
            issues=matches,
            met=met,
            asked=asked_for | {"words": words},
            failures=sorted({issue.failure.value for issue in catalogued}),
            components=sorted({name for issue in catalogued for name in issue.components}),
        )

    async def known_run(self, request: Request) -> Run:
        """The run that an address names. Raises HTTPException."""
        ident = request.path_params["run"]
        run = await asked(lambda: self.site.records.run(ident))
        if run is None:
            raise HTTPException(404, "there is no such run on record")
        return run

    def log_path(self, run: Run, log: str) -> Path:
        """The log of a step; the names are those on record, never those of the address."""
        return self.site.home.runs / run.id / (log or "none")


def about(issue: Issue, failure: str = "", component: str = "") -> bool:
    """Whether an issue is of that class and seen in that component (or in any)."""
    return failure in ("", issue.failure.value) and (
        not component or not issue.components or component in issue.components
    )


def step_of(run: Run, name: str) -> StepRun:
    """The newest try of a step of a run. Raises HTTPException where it has none of that name."""
    step = next((step for step in reversed(run.steps) if step.name == name), None)
    if step is None or not step.log:
        raise HTTPException(404, "there is no log of that step")
    return step


def charts(samples: Sequence[Sample]) -> list[Chart]:
    """Memory and processes over the time of a run, added up over its steps."""
    memory: dict[float, float] = {}
    processes: dict[float, float] = {}
    for sample in samples:
        second = round(sample.at)
        memory[second] = memory.get(second, 0) + sample.memory
        processes[second] = processes.get(second, 0) + sample.processes
    ends = ("0 s", duration(max(memory, default=0)))
    series: tuple[tuple[str, dict[float, float], Callable[[float], str]], ...] = (
        ("Memory", memory, size),
        ("Processes", processes, lambda value: f"{value:.0f}"),
    )
    drawings = [
        # where nothing was measured there is nothing to draw
        chart(name, {name.lower(): sorted(points.items()) if any(points.values()) else []}, ends, unit)
        for name, points, unit in series
    ]
    return [drawing for drawing in drawings if drawing is not None]


def once(findings: Iterable[Finding]) -> list[Finding]:
    """Each statement once, however many files and runs say it; what is wrong comes first."""
    unique = {
        (
            finding.component,
            finding.check,
            finding.name,
            finding.ok,
            finding.absent,
            finding.detail,
            finding.device,
        ): finding
        for finding in findings
    }
    return sorted(unique.values(), key=lambda finding: finding.ok)
