"""What changes while one looks: server-sent events of a run's steps, and of a log's new lines."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import asdict

import anyio
from starlette.requests import Request
from starlette.responses import StreamingResponse

from rocwright.records.model import Run, StepRun
from rocwright.web.graph import look_of
from rocwright.web.log_lines import read_part
from rocwright.web.pages import Pages, step_of
from rocwright.web.site import asked

LOOK_SECONDS = 0.1
"""Between two looks at a log's length."""

STATE_SECONDS = 0.5
"""Between two looks at the records."""

LONGEST_SECONDS = 3600.0
"""After this the client asks anew, from where it is."""

MOST_BYTES = 64 * 1024
"""Of a log in one message: what one client has in memory at most."""

_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class Live:
    """Streams for a site's pages."""

    def __init__(self, pages: Pages) -> None:
        self.pages, self.site = pages, pages.site

    async def run(self, request: Request) -> StreamingResponse:
        """The states of a run's steps, now and at each change, until it has ended."""
        self.site.need(request, "read")
        run = await self.pages.known_run(request)
        return _stream(self._states(run, request))

    async def _states(self, run: Run, request: Request) -> AsyncIterator[str]:
        seen, last = -1, ""
        with anyio.move_on_after(LONGEST_SECONDS):
            while not await request.is_disconnected():
                changed, _ = await asked(self.site.records.changed)
                if changed != seen:
                    seen = changed
                    run = await self._again(run)
                    told = json.dumps(_told(run))
                    if told != last:
                        last = told
                        yield _event("state", told)
                    if run.state == "ended":
                        break
                else:
                    yield ": \n\n"
                await anyio.sleep(STATE_SECONDS)
        yield _event("end", "{}")

    async def _again(self, run: Run) -> Run:
        return await asked(lambda: self.site.records.run(run.id)) or run

    async def log(self, request: Request) -> StreamingResponse:
        """A log's lines from a place on, as they come, until the step has ended."""
        self.site.need(request, "read")
        run = await self.pages.known_run(request)
        step = step_of(run, request.path_params["step"])
        start = request.headers.get("last-event-id") or request.query_params.get("from", "0")
        return _stream(self._lines(run, step, int(start) if start.isdecimal() else 0, request))

    async def _lines(self, run: Run, step: StepRun, at: int, request: Request) -> AsyncIterator[str]:
        path, looks = self.pages.log_path(run, step), 0
        with anyio.move_on_after(LONGEST_SECONDS):
            while not await request.is_disconnected():
                try:
                    more = path.stat().st_size > at
                except OSError:
                    more = False
                if more:
                    part = await asked(lambda at=at: read_part(path, at, self.site.hidden, MOST_BYTES))  # type: ignore[misc]
                    if part.end > at:
                        at = part.end
                        yield _event("lines", json.dumps([asdict(one) for one in part.lines]), at)
                        continue
                elif looks % 10 == 0:
                    run = await self._again(run)
                    if step_of(run, step.name).state == "ended" and run.state == "ended":
                        break
                    yield ": \n\n"
                looks += 1
                await anyio.sleep(LOOK_SECONDS)
        yield _event("end", "{}")


def _stream(events: AsyncIterator[str]) -> StreamingResponse:
    return StreamingResponse(events, media_type="text/event-stream", headers=_HEADERS)


def _event(name: str, data: str, ident: int | None = None) -> str:
    mark = f"id: {ident}\n" if ident is not None else ""
    return f"event: {name}\n{mark}data: {data}\n\n"


def _told(run: Run) -> dict[str, object]:
    latest = {one.name: one for one in run.steps}
    return {
        "state": run.state,
        "outcome": run.outcome,
        "steps": {
            name: {"look": look_of(one), "seconds": round(one.seconds), "jobs": one.most_jobs or one.jobs}
            for name, one in latest.items()
        },
    }
