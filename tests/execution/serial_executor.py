"""A second executor: one step after the other, in folders of its own, sharing nothing but the store."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from rocbase.errors import InternalError
from rocwright.execution.executor import Ended, Event, ExecutorOffer, Line, Queued, Started, Task, ended


@dataclass
class SerialExecutor:
    """Runs in `folder`, which is its home folder too. `ran` is what it was asked to run."""

    folder: Path
    queue: list[Task] = field(default_factory=list)
    ran: list[Task] = field(default_factory=list)
    soon: list[Event] = field(default_factory=list)

    def offers(self) -> Sequence[ExecutorOffer]:
        return (ExecutorOffer(name="serial", cores=1, memory=2**30, disk=2**30),)

    def submit(self, task: Task) -> None:
        self.queue.append(task)
        self.soon.append(Queued(task))

    def cancel(self, task: Task) -> None:
        self.queue.remove(task)
        self.soon.append(Ended(task=task))

    def events(self) -> Iterator[Event]:
        while self.soon:
            yield self.soon.pop(0)
        if self.queue:
            yield from self.run(self.queue.pop(0))

    def run(self, task: Task) -> Iterator[Event]:
        self.ran.append(task)
        yield Started(task, 1)
        begun, report = time.monotonic(), self.folder / f"{task.id}.json"
        done = subprocess.run(
            [sys.executable, "-m", "rocwright.execution", *task.words(jobs=1, report=report)],
            cwd=self.folder,
            env=os.environ | {"ROCWRIGHT_HOME": str(self.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        for line in done.stdout.splitlines():
            yield Line(task, line)
        silent = InternalError(f"ended with {done.returncode}")
        yield ended(task, report, time.monotonic() - begun, lambda: silent, ok=done.returncode == 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass
