"""What changes while one looks: server-sent events of a run's steps, and of a log's new lines."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Generic, TypeVar

import anyio
from starlette.requests import Request
from starlette.responses import StreamingResponse

from rocbase.errors import ExplainedError
from rocwright.records.model import Run, StepRun, StepTime
from rocwright.web.eta import going, in_a_word
from rocwright.web.graph import look_of
from rocwright.web.log_lines import read_part
from rocwright.web.pages import Pages, step_of
from rocwright.web.site import asked, number

# Between two looks at the logs that somebody waits for.
LOOK_SECONDS = 0.05

# So many of them between two looks at the records.
RECORDS_LOOKS = 6


class Bells:
    """Wakes those who wait; looks only while anybody does. `changed` gives the counter of the records."""

    def __init__(self, changed: Callable[[], Awaitable[int]]) -> None:
        self._changed = changed
        self._hearing: dict[Path, set[asyncio.Event]] = {}
        self._task: asyncio.Task[None] | None = None
        self.counter = -1
        """The records' counter when they were last looked at."""

    @contextmanager
    def heard(self, path: Path) -> Iterator[asyncio.Event]:
        """An event that is set when the file there grows, and when the records change."""
        event = asyncio.Event()
        self._hearing.setdefault(path, set()).add(event)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look())
        try:
            yield event
        finally:
            mine = self._hearing[path]
            mine.discard(event)
            if not mine:
                del self._hearing[path]

    async def _look(self) -> None:
        sizes: dict[Path, int] = {}
        looks = 0
        while self._hearing:
            for path in [*self._hearing]:
                # whoever has just come has looked by itself
                size, previous = size_of(path), sizes.get(path)
                sizes[path] = size
                if previous is not None and size != previous:
                    _ring(self._hearing[path])
            if looks % RECORDS_LOOKS == 0:
                counter = await self._changed()
                if counter != self.counter:
                    self.counter = counter
                    for events in [*self._hearing.values()]:
                        _ring(events)
            looks += 1
            await asyncio.sleep(LOOK_SECONDS)


def size_of(path: Path) -> int:
    """Bytes of a file, 0 where it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _ring(events: set[asyncio.Event]) -> None:
    for event in events:
        event.set()


# After so much silence a client hears that the server is there, if it still may listen.
PING_SECONDS = 5.0

# After this the client asks anew, from where it is.
LONGEST_SECONDS = 3600.0

# Of a log in one message, more than its longest line.
MOST_BYTES = 128 * 1024

# Messages that are kept for the next client who wants the same.
MOST_KEPT = 16

PING = ": \n\n"

_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}

T = TypeVar("T")


class Live:
    """Streams for a site's pages. What many clients wait for is looked up, read and written once."""

    def __init__(self, pages: Pages) -> None:
        self.pages, self.site = pages, pages.site
        self.bells = Bells(self._changed)
        self._runs = _Shared[Run | None]()
        self._parts = _Shared[tuple[int, str]]()

    async def run(self, request: Request) -> StreamingResponse:
        """The states of a run's steps, now and at each change, until it has ended."""
        self.site.need(request, "read")
        run = await self.pages.known_run(request)
        return _stream(self._states(run, self._may(request)))

    def _may(self, request: Request) -> Callable[[], bool]:
        return lambda: self.site.still(request, "read")

    async def _states(self, run: Run, may: Callable[[], bool]) -> AsyncIterator[str]:
        last, times = "", await asked(self.site.records.times)
        with anyio.move_on_after(LONGEST_SECONDS), self.bells.heard(self.site.home.runs) as bell:
            while True:
                bell.clear()
                run = await self._newest_run(run)
                state = json.dumps(_snapshot(run, times))
                if not may():
                    return
                if state != last:
                    last = state
                    yield _event("state", state)
                if run.state == "ended":
                    break
                if not await _rung(bell):
                    yield PING
        yield _event("end", "{}")

    async def log(self, request: Request) -> StreamingResponse:
        """A log's lines from a place on, as they come, until the run has ended."""
        self.site.need(request, "read")
        run = await self.pages.known_run(request)
        step = step_of(run, request.path_params["step"])
        start = request.headers.get("last-event-id") or request.query_params.get("from", "0")
        return _stream(self._lines(run, step, number(start), self._may(request)))

    async def _lines(
        self, run: Run, step: StepRun, offset: int, may: Callable[[], bool]
    ) -> AsyncIterator[str]:
        path = self.pages.log_path(run, step.log)
        with anyio.move_on_after(LONGEST_SECONDS), self.bells.heard(path) as bell:
            while True:
                bell.clear()
                run = await self._newest_run(run)
                end, lines = await self._part(path, offset)
                if not may():
                    return
                if end > offset:
                    offset = end
                    yield lines
                elif run.state == "ended":
                    break
                elif not await _rung(bell):
                    yield PING
        yield _event("end", "{}")

    async def _part(self, path: Path, offset: int) -> tuple[int, str]:
        size = size_of(path)
        if size <= offset:
            return offset, ""

        def read() -> tuple[int, str]:
            part = read_part(path, offset, self.site.hidden, MOST_BYTES)
            return part.end, _event("lines", json.dumps([asdict(line) for line in part.lines]), part.end)

        return await self._parts.get((path, offset, size), lambda: asked(read))

    async def _newest_run(self, run: Run) -> Run:
        """The run as it is on record; as it was where the records do not answer."""
        if run.state == "ended":
            return run
        try:
            key = (run.id, self.bells.counter)
            return await self._runs.get(key, lambda: asked(lambda: self.site.records.run(run.id))) or run
        except ExplainedError:
            return run

    async def _changed(self) -> int:
        try:
            return (await asked(self.site.records.changed))[0]
        except ExplainedError:
            return self.bells.counter


class _Shared(Generic[T]):
    """What several ask for at once is worked out once; the newest few are kept."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, asyncio.Task[T]] = OrderedDict()

    async def get(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` gives, or gave to who asked for the same; a failure is told to all, and not kept."""
        task = self._known.get(key)
        if task is None:
            task = self._known[key] = asyncio.ensure_future(_awaited(work))
            while len(self._known) > MOST_KEPT:
                self._known.popitem(last=False)
        try:
            # one client that goes does not take it from the others
            return await asyncio.shield(task)
        except ExplainedError:
            self._known.pop(key, None)
            raise


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


async def _rung(bell: asyncio.Event) -> bool:
    """Wait for the bell, not for ever."""
    with anyio.move_on_after(PING_SECONDS):
        await bell.wait()
    return bell.is_set()


def _stream(events: AsyncIterator[str]) -> StreamingResponse:
    return StreamingResponse(events, media_type="text/event-stream", headers=_HEADERS)


def _event(name: str, data: str, ident: int | None = None) -> str:
    mark = f"id: {ident}\n" if ident is not None else ""
    return f"event: {name}\n{mark}data: {data}\n\n"


def _snapshot(run: Run, times: Sequence[StepTime]) -> dict[str, object]:
    latest, how_far = {step.name: step for step in run.steps}, going(run, times)
    return {
        "title": in_a_word(run),
        "words": how_far.words,
        "share": round(how_far.share, 3),
        "state": run.state,
        "outcome": run.outcome,
        "steps": {
            name: {
                "look": look_of(step),
                "seconds": round(step.seconds),
                "jobs": step.most_jobs or step.jobs,
                "log": bool(step.log),
            }
            for name, step in latest.items()
        },
    }
