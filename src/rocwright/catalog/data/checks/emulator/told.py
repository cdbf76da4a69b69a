"""What the checks on an emulated GPU share: a program run in the emulator, its races, lines for rocwright."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


def say(name: str, ok: bool, detail: str, device: str) -> None:
    """A line that rocwright reads."""
    told = {"name": name, "ok": ok, "detail": detail[:1000], "device": device}
    print(f"ROCWRIGHT-CHECK {json.dumps(told)}", flush=True)


def ran(command: Sequence[str], seconds: float) -> tuple[int, str, str]:
    """Exit status, output and errors of a command; 124 where it took longer, 127 where it cannot be run."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return 124, "", f"no end after {seconds:g} s"
    except OSError as error:
        return 127, "", f"{command[0]}: {error.strerror}"
    return done.returncode, done.stdout, done.stderr


class Emulator:
    """What programs are run in: its words before theirs, and where it reports races (`FILE=BEGINNING`)."""

    def __init__(self, words: Sequence[str], report: str) -> None:
        file, _, self.begins = report.partition("=")
        self.words, self.report, self.races = [*words], Path(file), 0

    def run(self, command: Sequence[str], seconds: float) -> tuple[int, str, str]:
        """Exit status, output and errors; races that were reported are counted."""
        self.report.unlink(missing_ok=True)
        found = ran([*self.words, *command], seconds)
        if self.report.exists():
            with self.report.open(errors="replace") as lines:
                self.races += sum(line.startswith(self.begins) for line in lines)
        return found

    def say_races(self, device: str) -> bool:
        """A line for what it reported; whether that was nothing."""
        say("races", self.races == 0, f"{self.races} reported by the emulator", device)
        return self.races == 0


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """What stands before the first `--`, and behind it."""
    at = words.index("--")
    return [*words[:at]], [*words[at + 1 :]]


def last(text: str) -> str:
    """The last line that says something."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no output")


def compiler() -> str:
    """The HIP compiler, where distributions and AMD put it."""
    folders = [*os.environ.get("PATH", "").split(":"), "/opt/rocm/bin"]
    return next((f"{one}/hipcc" for one in folders if os.access(f"{one}/hipcc", os.X_OK)), "hipcc")
