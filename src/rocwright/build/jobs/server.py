"""The job server of one build: a thread that keeps the right number of tokens in the fifo.

It alone decides how many processes there may be, for all steps that run at once; each step has a seat. It
outlives no build: its folder and its cgroup are those of a sandbox without processes of its own, and go the
same way (sandbox/state.py), also where the build is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock, Thread

from rocwright.build.jobs.learn import Learnt
from rocwright.build.jobs.policy import Decision, StepNow, decide, fitting
from rocwright.build.jobs.processes import Kind, Seen, Sight, Watch
from rocwright.build.jobs.room import Room, read_room
from rocwright.build.jobs.tokens import Tokens
from rocwright.home import Home
from rocwright.plan.model import Step
from rocwright.sandbox import cgroup, reaper, state

PATIENCE = 2.0
"""Seconds for which tokens must be missing before they are held to be lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a step had of the machine, for its record: bytes, seconds, and the fewest and most processes that
    it and those beside it were allowed."""

    peak_memory: int
    paused_seconds: float
    least: int
    most: int


@dataclass(slots=True)
class Seat:
    """A step's place at the server. `jobs` is the number for tools that know no job server.

    `working` and `memory` are as last seen: processes that work, and bytes.
    """

    name: str
    component: str
    reckoned: int
    jobs: int
    begun: float
    server: JobServer
    pid: int | None = None
    shares: bool = False
    working: int = 0
    memory: int = 0
    peak: int = 0
    paused: float = 0
    least: int = 0
    most: int = 0

    def started(self, pid: int) -> None:
        """Tell the process of the step: its sandboxes carry its number."""
        self.pid = pid

    def close(self) -> Held:
        """Give the place back; what the step had. May be repeated."""
        self.server.leave(self)
        return Held(peak_memory=self.peak, paused_seconds=self.paused, least=self.least, most=self.most)

    @property
    def reserved(self) -> int:
        """Processes that it may have without taking a token."""
        return 1 if self.shares else self.jobs


class JobServer:
    """`with JobServer(home, jobs=8, memory=None) as server`: `jobs` processes at most, `memory` in bytes.

    Every process that it paused goes on when it is left, whatever happens.
    """

    def __init__(self, home: Home, *, jobs: int, memory: int | None = None) -> None:
        self.most, self.limit = jobs, memory
        self.decision = Decision(tokens=jobs)
        self._home = home
        self._seats: list[Seat] = []
        self._lock = Lock()
        self._wake = Event()
        self._stopped = False
        self._stopped_ones: dict[int, Seen] = {}
        self._thread = Thread(target=self._serve, name="job server", daemon=True)

    def __enter__(self) -> JobServer:
        reaper.ensure()
        self.folder = state.new_folder()
        self._group = cgroup.create_above(self.folder.name)
        state.write_record(self.folder, (), self._group)
        if self._group is not None and self.limit is not None:
            self._group.limit(self.limit)
        self._tokens = Tokens.create(self.folder)
        self._circulating = 0
        self._learnt = Learnt.load(self._home)
        self._watch = Watch()
        self.room = self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self._wake.set()
        self._thread.join()
        self._tokens.close()
        self._learnt.save()
        state.dispose(self.folder)

    def seat(self, step: Step, waiting: int = 1) -> Seat | None:
        """A place for a step that compiles, None where it has to wait for another to end.

        `waiting` is how many such steps want one now. Where nothing runs there is always a place.
        """
        with self._lock:
            free = self.most - sum(each.reserved for each in self._seats)
            share = min(free // max(waiting, 1), step.needs.cores)
            fits = fitting(
                self._look(), self._learnt, step.component, step.name, step.needs.memory, self.most
            )
            if self._seats and (min(share, fits) < 1 or share < min(self.most // 4, step.needs.cores)):
                return None
            return self._sit(step, max(1, min(share, fits)))

    def small_seat(self, step: Step) -> Seat:
        """The place of a step that is one process (a download, a tree): there always is one."""
        with self._lock:
            return self._sit(step, 1)

    def leave(self, seat: Seat) -> None:
        """Take a place back."""
        with self._lock, contextlib.suppress(ValueError):
            self._seats.remove(seat)
        self._wake.set()

    def _sit(self, step: Step, jobs: int) -> Seat:
        allowed = self.decision.tokens
        seat = Seat(
            step.name,
            step.component,
            step.needs.memory,
            jobs,
            time.monotonic(),
            self,
            least=allowed,
            most=allowed,
        )
        self._seats.append(seat)
        self._wake.set()
        return seat

    def _look(self, sight: Sight | None = None) -> Room:
        """The room; `sight` is what the build's processes were seen to have, and where."""
        if sight is None:
            return read_room(self.limit, self._group)
        own = sum(one.memory for one in sight.seen)
        return read_room(self.limit, self._group, sight.groups, own)

    def _serve(self) -> None:
        try:
            while not self._stopped:
                self._tick()
                self._wake.wait(self.decision.next)
                self._wake.clear()
        finally:
            _signal(self._stopped_ones.values(), signal.SIGCONT)

    def _tick(self) -> None:
        with self._lock:
            seats = list(self._seats)
        for seat in seats:
            seat.shares = seat.shares or (seat.pid is not None and told_to_share(self.folder, seat.pid))
        now = time.monotonic()
        sight = self._watch.read({seat.pid: seat.name for seat in seats if seat.pid is not None})
        self.room = self._look(sight)
        components = {seat.name: seat.component for seat in seats}
        for one in sight.ended:
            if one.kind is not Kind.OTHER and one.step in components:
                self._learnt.note(components[one.step], one.step, one.kind, one.peak)
        steps = [
            StepNow(
                name=seat.name,
                component=seat.component,
                memory=seat.reckoned,
                jobs=seat.jobs,
                shares=seat.shares,
                begun=seat.begun,
            )
            for seat in seats
        ]
        self.decision = decide(
            now, self.room, sight.seen, steps, self._learnt, self.decision, self.most, os.cpu_count()
        )
        self._circulate(max(0, self.decision.tokens - sum(seat.reserved for seat in seats)))
        _signal(self.decision.pause, signal.SIGSTOP)
        _signal(self.decision.resume, signal.SIGCONT)
        self._stopped_ones |= {each.pid: each for each in self.decision.pause}
        for each in self.decision.resume:
            self._stopped_ones.pop(each.pid, None)

    def _circulate(self, wanted: int) -> None:
        """Have `wanted` tokens in the fifo and in the hands of clients together."""
        if wanted > self._circulating:
            self._circulating += self._tokens.put(wanted - self._circulating)
        elif wanted < self._circulating:
            self._circulating -= self._tokens.take(self._circulating - wanted)


def tell_to_share(folder: Path, pid: int) -> None:
    """Let the server at `folder` know that the tools of a step, by its process, are its clients."""
    (folder / f"shares-{pid}").touch()


def told_to_share(folder: Path, pid: int) -> bool:
    """Whether the tools of a step are clients."""
    return (folder / f"shares-{pid}").exists()


def _signal(targets: Iterable[Seen], number: signal.Signals) -> None:
    """Send a signal to processes, never to later ones that have their numbers by now."""
    for each in targets:
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(each.pid)
            try:
                if state.start_time(each.pid) == each.started:
                    signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)
