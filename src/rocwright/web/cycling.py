"""`rocwright cycle` again and again, in a process of its own, never beside a build of the queue."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rocbase.errors import ExplainedError
from rocbase.processes import run as process
from rocwright.web.queue import PATIENCE, mine

# Hours until what was no whole cycle is tried again.
SOON = 0.1


@dataclass(slots=True)
class Cycling:
    """Turns each so many hours in the project's `folder`, the first time at once. `turn` is what it shares
    with the queue; `next` is when it turns again, "" while it does."""

    folder: Path
    hours: float
    turn: threading.Lock
    say: Callable[[str], None] = lambda _: None
    engine: str = ""
    next: str = ""
    _child: subprocess.Popen[bytes] | None = None
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop what runs, in order; it goes on where it was the next time."""
        self._ended.set()
        child = self._child
        if child is not None and child.poll() is None:
            child.terminate()
        if self._thread is not None:
            self._thread.join(PATIENCE)
        if child is not None and child.poll() is None:
            process.kill_group(child)

    def _work(self) -> None:
        while not self._ended.is_set():
            self.next = ""
            with self.turn:
                complete = not self._ended.is_set() and self._once()
            hours = self.hours if complete else min(self.hours, SOON)
            self.next = (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
            self._ended.wait(hours * 3600)

    def _once(self) -> bool:
        """Whether it was a whole cycle, whatever came of it: not where another one runs still, say."""

        def set_child(child: subprocess.Popen[bytes]) -> None:
            self._child = child

        try:
            ended = process.stream(
                [*mine("cycle"), *(("--engine", self.engine) if self.engine else ())],
                lambda line: self.say(f"cycle: {line}"),
                cwd=self.folder,
                on_start=set_child,
            )
        except (ExplainedError, OSError) as error:
            self.say(f"cycle: {error}")
            return False
        else:
            return ended.returncode in (0, 1)
        finally:
            self._child = None
