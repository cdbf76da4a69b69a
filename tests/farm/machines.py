"""Machines of a farm: processes with a home, a key and a store of their own, that share a bucket."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rocwright.store.signed import now
from rocwright.store.signing.keys import make_key, pem_of, signer_of
from rocwright.store.trust import Trust, TrustedKey, write_trust

NAMES = ("asks", "one", "two")
"""Who builds, and two workers."""


def make_homes(folder: Path) -> dict[str, Path]:
    """A home for each, with a key that the others trust."""
    homes = {name: folder / name for name in NAMES}
    keys = []
    for name, home in homes.items():
        home.mkdir(parents=True)
        signer = signer_of(make_key(home / "attest.key").private)
        keys.append(TrustedKey(name=name, pem=pem_of(signer).decode(), added=now()))
    for home in homes.values():
        write_trust(home / "trust.toml", Trust(key=tuple(keys)))
    return homes


@dataclass
class Running:
    """A `rocwright` of its own, and what it said."""

    process: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)
    lines: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip())
            self.lines.put(line.rstrip())

    def wait_for(self, text: str, seconds: float = 60) -> str:
        """The first line with a text, that was not given before."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                break
            if text in line:
                return line
        raise AssertionError(f"nobody said {text!r}: {self.said}")

    def end(self) -> int:
        """Ask it to end, and wait until it has."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@contextmanager
def running(home: Path, *words: str) -> Iterator[Running]:
    """`rocwright WORDS` with that home, in a group of its own; it is killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rocwright", *words],
        env={**os.environ, "ROCWRIGHT_HOME": str(home), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield Running(process)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGCONT)
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.05)
