"""Tries an emulator before anything is claimed of what ran on it: small kernels, compared with the CPU.

selftest.py --version "COMMAND" --target TARGET --races FILE --lds-race BEGINS --race BEGINS -- EMULATOR ..
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from told import Emulator, arguments, compiler, last, ran, say

PROGRAMS = Path(__file__).resolve().parent / "programs"


def main() -> int:
    words, emulator = arguments("version")
    status, told, errors = ran(shlex.split(words.version), 60)
    say("version", status == 0, last(told or errors), "")
    right = [trial(path, words.target, emulator) for path in sorted(PROGRAMS.glob("*.hip"))]
    raced = not emulator.say_races(words.target)
    return 1 if status != 0 or raced or not all(right) else 0


def trial(source: Path, target: str, emulator: Emulator) -> bool:
    """Compile one program for the target, run it in the emulator, and say how it went."""
    name, program = source.stem, Path.cwd() / source.stem
    command = [compiler(), f"--offload-arch={target}", "-O2", str(source), "-o", str(program)]
    status, told, errors = ran(command, 600)
    if status != 0:
        say(name, False, f"does not compile: {last(errors or told)}", target)
        return False
    status, told, errors = emulator.run([str(program)], 300)
    line = last(told or errors)
    seen, _, rest = line.partition(" ")
    ok = status == 0 and seen.partition(":")[0] == target and rest.split()[1:] == ["0"]
    say(name, ok, f"{rest.split()[0]} values as on the CPU" if ok else f"ended with {status}: {line}", target)
    return ok


if __name__ == "__main__":
    sys.exit(main())
