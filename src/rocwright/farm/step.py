"""A step under way on this machine: its process, and how it ended."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock

from rocbase.errors import ExplainedError
from rocbase.folders.temporary import temporary_folder
from rocbase.processes import run as process
from rocbase.processes.python import python_module
from rocwright.execution.executor import Ended, Task, ended
from rocwright.execution.jobs.server import Seat
from rocwright.execution.killed import interrupted, killed
from rocwright.sandbox.memory import machine_kills


class LocalStep:
    """A task with its seat at the job server. One thread runs it; any may end it. `told` says that it was
    told as started."""

    def __init__(self, task: Task, seat: Seat) -> None:
        self.task, self.seat = task, seat
        self.begun = self.told = False
        self._child: subprocess.Popen[bytes] | None = None
        self._cancelled = False
        self._lock = Lock()

    def begin(self) -> bool:
        """Whether it may begin: it was not cancelled before."""
        with self._lock:
            self.begun = not self._cancelled
        return self.begun

    def run(
        self,
        *,
        server: Path | None,
        memory: int | None,
        environment: Mapping[str, str],
        on_line: Callable[[str], None],
        full: Callable[[], bool],
        explain: Callable[[ExplainedError], ExplainedError],
    ) -> Ended:
        """Run it to its end. It is asked to end at once where a disk is `full`; `explain` turns a failure
        into what the machine knows of it."""
        kills = machine_kills()

        def on_start(child: subprocess.Popen[bytes]) -> None:
            self.seat.started(child.pid)
            with self._lock:
                self._child = child
            if self._cancelled:
                process.kill_group(child)
            elif full():
                child.terminate()

        with contextlib.closing(self.seat), temporary_folder("step") as folder:
            report = Path(folder) / "report.json"
            words = self.task.words(jobs=self.seat.jobs, memory=memory, report=report, server=server)
            finished = process.stream(
                python_module("rocwright.execution", *words),
                on_line,
                on_start=on_start,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
            )
            event = ended(
                self.task,
                report,
                finished.seconds,
                lambda: killed(finished.returncode, kills),
                ok=finished.ok,
            )
            if event.error is not None:
                # whatever it says when it was cancelled, it says because it was
                error = interrupted() if self._cancelled else explain(event.error)
                event = replace(event, error=error)
        usage = self.seat.close()
        return replace(
            event,
            too_large=self.seat.alone,
            paused=usage.paused_seconds,
            least_jobs=usage.least,
            most_jobs=usage.most,
        )

    def cancel(self) -> bool:
        """Kill it with all that it started; whether it had not begun, and never will."""
        with self._lock:
            self._cancelled = True
        self.kill()
        return not self.begun

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._child is not None and self._child.poll() is None

    def terminate(self) -> None:
        """Ask it to end in order."""
        if self._child is not None and self.alive:
            self._child.terminate()

    def kill(self) -> None:
        """Kill its process, and all that it started."""
        if self._child is not None and self.alive:
            process.kill_group(self._child)
