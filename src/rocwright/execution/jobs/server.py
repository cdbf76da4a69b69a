"""The job server of one build: a thread that keeps the right number of tokens in the fifo.

It alone decides how many processes there may be, for all steps that run at once; each step has a seat. Its
folder and its cgroup are those of a sandbox without processes of its own, and go the same way
(sandbox/state.py), also where the build is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event, Lock, Thread

from rocbase.units import size
from rocwright.execution.executor import Alone
from rocwright.execution.jobs.beside import NOBODY, Board
from rocwright.execution.jobs.budget import StepJobs
from rocwright.execution.jobs.forms import clients
from rocwright.execution.jobs.join import SHARES, read_joined
from rocwright.execution.jobs.learn import Learnt
from rocwright.execution.jobs.policy import Decision, decide, fitting
from rocwright.execution.jobs.processes import ProcessKind, Sight, StepProcess, Watch, send
from rocwright.execution.jobs.room import MemoryBudget, Sums, read_room
from rocwright.execution.jobs.tokens import WRITERS, Circulation, Tokens
from rocwright.home import Home
from rocwright.model.steps import Step
from rocwright.sandbox import cgroup, reaper, state


@dataclass(frozen=True, slots=True, kw_only=True)
class StepUsage:
    """What a step had of the machine, for its record: bytes, seconds that processes of it were paused, and
    the fewest and most processes that all steps together were allowed meanwhile."""

    peak_memory: int
    paused_seconds: float
    least: int
    most: int


@dataclass(slots=True, kw_only=True)
class Seat(StepJobs):
    """A step's place at the server. `jobs` is the number for tools that know no job server.

    `cap` is the most that all may have while it runs. `working` and `memory` are as last seen: processes that
    compile or link, and bytes of all. `alone` is a process for which no number of jobs would have left
    enough.
    """

    server: JobServer
    least: int
    most: int
    cap: int
    pid: int | None = None
    working: int = 0
    memory: int = 0
    peak: int = 0
    paused: float = 0
    alone: Alone | None = None

    @property
    def counts(self) -> int:
        """How many jobs it has now, or counts as: of one whose tools are no clients, all of its own."""
        return self.working or (1 if self.shares else self.jobs)

    def started(self, pid: int) -> None:
        """Tell the process of the step: its sandboxes carry its number."""
        self.pid = pid

    def close(self) -> StepUsage:
        """Give the place back; what the step had. May be repeated."""
        self.server.leave(self)
        return StepUsage(peak_memory=self.peak, paused_seconds=self.paused, least=self.least, most=self.most)

    def note(self, processes: Sequence[StepProcess], allowed: int, seconds: float) -> None:
        """Take in what was seen of the step, and what was allowed, `seconds` after the last time."""
        self.memory = sum(process.memory for process in processes)
        self.working = sum(
            process.kind is not ProcessKind.OTHER and not process.paused for process in processes
        )
        self.peak = max(self.peak, self.memory)
        self.paused += seconds * sum(process.paused for process in processes)
        self.least, self.most = min(self.least, allowed), max(self.most, allowed)


class JobServer:
    """`with JobServer(home, jobs=8, memory=None) as server`: `jobs` processes at most, `memory` in bytes.

    Every process that it paused goes on when it is left, whatever happens. Not `sharing`, it gives each
    step a number and does no more. `say` is for lines for people, from its own thread.
    """

    def __init__(
        self,
        home: Home,
        *,
        jobs: int,
        memory: int | None = None,
        sharing: bool = True,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._say = say
        self._told: set[int] = set()
        self.allowed, self.limit, self.sharing = jobs, memory, sharing
        self.decision = Decision(tokens=jobs)
        self._home = home
        self._seats: list[Seat] = []
        self._lock = Lock()
        self._wake = Event()
        self._stopped = False
        self._paused: dict[int, StepProcess] = {}
        self._beside, self._sums = NOBODY, Sums()
        self._looked = time.monotonic()
        self._thread = Thread(target=self._serve, name="job server", daemon=True)

    def __enter__(self) -> JobServer:
        reaper.ensure()
        self.folder = state.new_folder()
        self._group = cgroup.create_above(self.folder.name)
        state.write_record(self.folder, (), self._group)
        if self._group is not None and self.limit is not None:
            self._group.limit(self.limit)
        self._board = Board(self._home.path, self.folder)
        self._circulation = Circulation(Tokens.create(self.folder))
        self._learnt = Learnt.load(self._home)
        if self._learnt.set_aside is not None:
            self._say(f"the learned memory use could not be read and starts empty: {self._learnt.set_aside}")
        self._watch, self._clients = Watch(), clients()
        if self.sharing:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self._wake.set()
        if self.sharing:
            self._thread.join()
        self._circulation.tokens.close()
        self._learnt.save()
        self._board.close()
        state.dispose(self.folder)

    @property
    def environment(self) -> dict[str, str]:
        """What the processes of steps need in their environment."""
        return {cgroup.ABOVE: self.folder.name} if self._group is not None else {}

    def seat(self, step: Step, *, waiting: int = 1, limit: int | None = None) -> Seat | None:
        """A place for a step that compiles, None where it has to wait for another to end.

        `waiting` is how many such steps want one now, `limit` how many jobs it may have. Where nothing else
        runs there is always a place. A step whose tools are clients grows by tokens; for others the number
        stays, so that less than a quarter of what there is, is not worth to begin with.
        """
        with self._lock:
            occupied = sum(1 if seat.shares else max(seat.jobs, seat.working) for seat in self._seats)
            self._beside = self._board.look()
            allowed = self._beside.most(self.allowed, max(os.cpu_count() or 1, self.allowed))
            # what other builds have now bounds its begin, and not what it may come to once they end
            cap = min(limit or self.allowed, self.allowed)
            share = min((allowed - occupied) // max(waiting, 1), step.resources.cores, cap)
            fits = fitting(
                self._look(), self._learnt, step.component, step.name, step.resources.memory, self.allowed
            )
            if self._seats and (min(share, fits) < 1 or share < min(cap // 4, step.resources.cores)):
                return None
            return self._sit(step, max(1, min(share, fits)), cap)

    def small_seat(self, step: Step) -> Seat:
        """The place of a step that is one process (a download, a tree): there always is one."""
        with self._lock:
            return self._sit(step, 1, self.allowed)

    def ran_out(self, step: Step, jobs: int, peak: int) -> None:
        """A step was ended for memory at `peak` bytes, with so many jobs: each wanted more than its share of
        them, and is known from now on to take twice that."""
        for _ in range(max(jobs, 1)):
            self._learnt.note(step.component, step.name, ProcessKind.COMPILE, 2 * peak // max(jobs, 1))

    def leave(self, seat: Seat) -> None:
        """Take a place back."""
        with self._lock, contextlib.suppress(ValueError):
            self._seats.remove(seat)
        self._wake.set()

    def _look(self, sight: Sight | None = None) -> MemoryBudget:
        """Read the memory budget; `sight` is what the build's processes were seen to have, and where."""
        if sight is None:
            return read_room(self.limit, self._group)
        own = sum(process.memory for process in sight.seen)
        return read_room(self.limit, self._group, sight.groups, own, self._beside.memory, self._sums)

    def _sit(self, step: Step, jobs: int, cap: int) -> Seat:
        tokens = self.decision.tokens
        seat = Seat(
            name=step.name,
            component=step.component,
            reckoned=step.resources.memory,
            jobs=jobs,
            server=self,
            least=tokens,
            most=tokens,
            cap=cap,
        )
        self._seats.append(seat)
        self._wake.set()
        return seat

    def _serve(self) -> None:
        try:
            while not self._stopped:
                self._tick()
                self._wake.wait(WRITERS if self._circulation.flooded else self.decision.next)
                self._wake.clear()
        finally:
            # also where something here is at fault: then all go on as if memory were no matter
            send(signal.SIGCONT, self._paused.values())
            self._circulation.settle(self.allowed - len(self._seats))

    def _tick(self) -> None:
        with self._lock:
            seats = list(self._seats)
        for seat in seats:
            if seat.pid is not None and (how := read_joined(self.folder, seat.pid)):
                seat.clients, seat.shares = True, how == SHARES
        limit = min((self.allowed, *(seat.cap for seat in seats)))
        clock = time.monotonic()
        out = self._circulation.out()
        sight = self._watch.read({seat.pid: seat.name for seat in seats if seat.pid is not None})
        self._learn(sight, {seat.name: seat.component for seat in seats})
        with self._board.turn() as self._beside:
            room = self._look(sight)
            self.decision = decide(
                clock,
                room,
                sight.seen,
                seats,
                self._learnt,
                self.decision,
                limit,
                os.cpu_count(),
                self._beside,
            )
            # before all that may have to wait for a disk
            self._pause(self.decision)
            self._board.say(self.decision.claim)
        for seat in seats:
            mine = [process for process in sight.seen if process.step == seat.name]
            seat.note(mine, self.decision.tokens, clock - self._looked)
        self._looked = clock
        self._circulation.note(
            clock,
            out=out,
            threads=_could_hold(sight.seen),
            surplus=sum(max(0, seat.working - 1) for seat in seats),
            started=_started(sight.seen, self._clients),
        )
        self._circulation.settle(self.decision.tokens - len(seats))
        if self.decision.hopeless is not None:
            self._too_large(self.decision.hopeless, room, seats)

    def _too_large(self, process: StepProcess, room: MemoryBudget, seats: Sequence[Seat]) -> None:
        """Say once that no number of jobs would help, and keep it for when the kernel has ended it."""
        for seat in seats:
            if seat.name == process.step:
                seat.alone = Alone(process.kind, process.memory, room.total)
        if process.pid not in self._told:
            self._told.add(process.pid)
            self._say(
                f"  {process.step}: one process ({process.kind.value}) alone uses {size(process.memory)}, "
                f"of at most {size(room.total)} for the whole build: fewer jobs do not help"
            )

    def _learn(self, sight: Sight, components: Mapping[str, str]) -> None:
        for process in sight.ended:
            if process.kind is not ProcessKind.OTHER and process.step in components:
                self._learnt.note(
                    components[process.step],
                    process.step,
                    process.kind,
                    process.peak,
                    unit=process.unit,
                    seconds=process.cpu,
                    area=process.area,
                )

    def _pause(self, decision: Decision) -> None:
        self._paused |= {process.pid: process for process in decision.pause}
        send(signal.SIGSTOP, decision.pause)
        send(signal.SIGCONT, decision.resume)
        for process in decision.resume:
            self._paused.pop(process.pid, None)


def _could_hold(processes: Sequence[StepProcess]) -> int:
    """Threads that could run on a token each: those of processes that started no other (what started the
    jobs is none), without the first of each step, which needs none."""
    parents = {process.parent for process in processes}
    threads = Counter[str]()
    for process in processes:
        if process.pid not in parents:
            threads[process.step] += process.threads
    return sum(count - 1 for count in threads.values())


def _started(processes: Sequence[StepProcess], programs: frozenset[str]) -> frozenset[int]:
    """What these programs have started, and what those have."""
    children: dict[int, list[int]] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process.pid)
    pids: set[int] = set()
    pending = [process.pid for process in processes if process.program in programs]
    while pending:
        started = children.pop(pending.pop(), [])
        pids.update(started)
        pending += started
    return frozenset(pids)
