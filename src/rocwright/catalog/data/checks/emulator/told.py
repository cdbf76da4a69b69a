"""What the checks on an emulated GPU share: a program run in the emulator, its races, lines for rocwright."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
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
    """What programs are run in: its words before theirs, and the races that it reported of them."""

    def __init__(self, words: Sequence[str], report: Path, lds: str, races: str) -> None:
        self.words, self.report, self.begins = [*words], report, (lds, races)
        self.lds = self.races = 0

    def run(self, command: Sequence[str], seconds: float) -> tuple[int, str, str]:
        """Exit status, output and errors; races that were reported are counted."""
        self.report.unlink(missing_ok=True)
        found = ran([*self.words, *command], seconds)
        if self.report.exists():
            with self.report.open(errors="replace") as lines:
                for line in lines:
                    self.lds += line.startswith(self.begins[0])
                    self.races += line.startswith(self.begins[1])
        return found

    def say_races(self, device: str) -> bool:
        """A line for what it reported; whether there was none in LDS.

        Those of registers are only told: they are the compiler's, and halves of registers are told as races.
        """
        others = f", {self.races - self.lds} of registers" if self.races > self.lds else ""
        say("races", self.lds == 0, f"{self.lds} in LDS{others}, as the emulator reports", device)
        return self.lds == 0


def arguments(*own: str) -> tuple[argparse.Namespace, Emulator]:
    """The command line: `own` options of a check, those that every check is told, and the emulator."""
    at = sys.argv.index("--")
    made = argparse.ArgumentParser()
    for name in (*own, "target", "races", "lds-race", "race"):
        made.add_argument(f"--{name}", required=True)
    words = made.parse_args(sys.argv[1:at])
    return words, Emulator(sys.argv[at + 1 :], Path(words.races), words.lds_race, words.race)


def last(text: str) -> str:
    """The last line that says something."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no output")


def compiler() -> str:
    """The HIP compiler, where distributions and AMD put it."""
    folders = [*os.environ.get("PATH", "").split(":"), "/opt/rocm/bin"]
    return next((f"{one}/hipcc" for one in folders if os.access(f"{one}/hipcc", os.X_OK)), "hipcc")


def compiled(source: Path, target: str, *options: str) -> tuple[Path, str]:
    """A program made of one HIP file for the target, in this folder, and why it could not be made."""
    program = Path.cwd() / source.stem
    command = [compiler(), f"--offload-arch={target}", "-O2", str(source), "-o", str(program), *options]
    status, told, errors = ran(command, 600)
    return program, "" if status == 0 else f"does not compile: {last(errors or told)}"


def compared(name: str, command: Sequence[str], target: str, emulator: Emulator, why: str = "") -> bool:
    """Run a program that compares with the CPU and prints `TARGET COUNT WRONG`; say how it went.

    `why` is how a library begins the line that says why it aborts, where that is not the last one.
    """
    status, told, errors = emulator.run(command, 300)
    reasons = [one for one in errors.splitlines() if why and one.startswith(why)]
    line = reasons[0] if status != 0 and reasons else last(told or errors)
    seen, _, rest = line.partition(" ")
    ok = status == 0 and seen.partition(":")[0] == target and rest.split()[1:] == ["0"]
    say(name, ok, f"{rest.split()[0]} values as on the CPU" if ok else f"ended with {status}: {line}", target)
    return ok
