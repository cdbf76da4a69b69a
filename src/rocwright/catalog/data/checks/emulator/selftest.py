"""Tries an emulator before anything is claimed of what ran on it: small kernels, compared with the CPU.

selftest.py --version "COMMAND" --target TARGET --races FILE --lds-race BEGINS --race BEGINS -- EMULATOR ..
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from told import Emulator, arguments, compared, compiled, last, ran, say

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
    program, why = compiled(source, target)
    if why:
        say(source.stem, False, why, target)
        return False
    return compared(source.stem, [str(program)], target, emulator)


if __name__ == "__main__":
    sys.exit(main())
