"""What was asked for in the page: one build after the other, each a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rocbase.errors import ExplainedError
from rocbase.processes import run as process
from rocbase.processes.python import python_module
from rocwright import __version__
from rocwright.plan.resolve.model import Request
from rocwright.records.ended import ended_as, me
from rocwright.records.model import Run, StepRun, new_run_id, now
from rocwright.records.read import Records

MOST_WAITING = 50
# Seconds that a build has to stop in order before it is killed.
PATIENCE = 20.0
LAST_LINES = 12


def mine(verb: str) -> list[str]:
    """The command with this verb, as a process that stops where this one ends."""
    return python_module("rocwright", "--stop-with", str(os.getpid()), verb)


class FullError(Exception):
    """The queue holds as many as it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOrder:
    """A build to be made: its id on record, what is asked for (None: the project's own file), by whom."""

    run: str
    request: Request
    own: bool
    heal: bool
    by: str
    engine: str = ""

    @property
    def origin(self) -> str:
        """Who asked, for the record; all tries of an order have the same, and no other has it."""
        return f"page {self.by} {self.run[-6:]}"

    @property
    def words(self) -> list[str]:
        """The command."""
        words = [*mine("build"), "--run-id", self.run, "--origin", self.origin]
        words += ["--heal"] if self.heal else []
        words += ["--engine", self.engine] if self.engine else []
        return words if self.own else [*words, *self.request.words]


@dataclass(slots=True)
class Queue:
    """Orders in turn, in a thread; `folder` is the project's, `engine` that of builds (the first
    that works here), `turn` is held while one is built."""

    records: Records
    folder: Path
    say: Callable[[str], None] = lambda _: None
    engine: str = ""
    waiting: deque[BuildOrder] = field(default_factory=deque)
    current: BuildOrder | None = None
    turn: threading.Lock = field(default_factory=threading.Lock)
    _cancelled: set[str] = field(default_factory=set)
    _child: subprocess.Popen[bytes] | None = None
    _wake: threading.Condition = field(default_factory=threading.Condition)
    _ended: bool = False
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to work."""
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop what runs, in order, and take no more."""
        with self._wake:
            self._ended = True
            remaining = [*self.waiting]
            self.waiting.clear()
            self._wake.notify()
            if self.current is not None:
                self._cancelled.add(self.current.run)
        for order in remaining:
            self._put_ended(order, "stopped")
        self._interrupt()
        if self._thread is not None:
            self._thread.join(PATIENCE + 5)

    def put(self, request: Request, *, own: bool, heal: bool, user: str) -> str:
        """Take an order; gives the id of its run, which is on record as queued. Raises FullError."""
        order = BuildOrder(run=new_run_id(), request=request, own=own, heal=heal, by=user, engine=self.engine)
        with self._wake:
            if len(self.waiting) >= MOST_WAITING or self._ended:
                raise FullError
            self.records.put(self._run(order, "queued"))
            self.waiting.append(order)
            self._wake.notify()
        return order.run

    def working(self, origin: str) -> bool:
        """Whether the order of that origin is being worked on: another try may follow one that failed."""
        current = self.current
        return current is not None and current.origin == origin

    def cancel(self, run: str, origin: str = "") -> bool:
        """Take an order back, or stop it where it runs, by the id of its run or its origin.

        False where it is neither waiting nor running.
        """
        with self._wake:
            order = next((order for order in self.waiting if order.run == run), None)
            if order is not None:
                self.waiting.remove(order)
            elif self.current is None or (self.current.run != run and self.current.origin != origin):
                return False
            else:
                # it may wait for its turn, or have just begun
                self._cancelled.add(self.current.run)
        if order is not None:
            self._put_ended(order, "stopped")
        else:
            self._interrupt()
        return True

    def _interrupt(self) -> None:
        child = self._child
        if child is None or child.poll() is not None:
            return
        # a shell may have let the server's children ignore Ctrl-C
        child.terminate()
        threading.Thread(target=self._kill_later, args=(child,), daemon=True).start()

    def _kill_later(self, child: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + PATIENCE
        while child.poll() is None:
            if time.monotonic() > until:
                process.kill_group(child)
                return
            time.sleep(0.1)

    def _work(self) -> None:
        while True:
            with self._wake:
                while not self.waiting and not self._ended:
                    self._wake.wait()
                if self._ended:
                    return
                self.current = order = self.waiting.popleft()
            with self.turn:
                try:
                    self._build(order)
                except (ExplainedError, OSError) as error:
                    self.say(f"build {order.request.stack} for {order.by}: {error}")
                finally:
                    self.current = self._child = None

    def _build(self, order: BuildOrder) -> None:
        if order.run in self._cancelled:
            self._put_ended(order, "stopped")
            return
        last: deque[str] = deque(maxlen=LAST_LINES)

        def set_child(child: subprocess.Popen[bytes]) -> None:
            self._child = child
            if order.run in self._cancelled:
                self._interrupt()

        ended = process.stream(
            order.words, last.append, cwd=self.folder, env=dict(os.environ), on_start=set_child
        )
        self.say(f"build {order.request.stack} for {order.by}: {ended.returncode}")
        run = self.records.run(order.run)
        if run is not None and run.state != "ended":
            # it never came to its first step: what it said is all that there is
            stopped = order.run in self._cancelled or ended.returncode in (
                130,
                -signal.SIGINT,
                -signal.SIGTERM,
            )
            self._put_ended(order, "stopped" if stopped else "failed", "\n".join(last))

    def _put_ended(self, order: BuildOrder, outcome: str, says: str = "") -> None:
        run = ended_as(outcome, self._run(order, "ended"))
        if says:
            message = next(
                (line for line in says.splitlines() if line.startswith("error")), says.splitlines()[-1]
            )
            error = {"class": "input", "message": message, "detail": says}
            step = StepRun(name="build", key="", outcome="failed", error=error)
            run = run.model_copy(update={"steps": (step,), "failure": "input"})
        self.records.put(run)

    def _run(self, order: BuildOrder, state: str) -> Run:
        return Run(
            id=order.run,
            command="build",
            started=now(),
            seconds=0,
            stack=order.request.stack,
            gpu=order.request.gpu,
            base=order.request.base,
            variant=order.request.variant,
            outcome="",
            state="queued" if state == "queued" else "ended",
            origin=order.origin,
            rocwright=__version__,
            **me(),
        )
