"""Runs routines of the base's rocBLAS on an emulated GPU, each in its own process, against the CPU.

rocblas.py --routines NAMES --target TARGET --races FILE --lds-race BEGINS --race BEGINS -- EMULATOR ..
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from told import arguments, compared, compiled, say

SAMPLE = Path(__file__).resolve().parent / "samples" / "rocblas.hip"


def main() -> int:
    words, emulator = arguments("routines")
    program, why = compiled(SAMPLE, words.target, "-lrocblas")
    if why:
        say("rocblas", False, why, words.target)
        return 1
    # where the library has no code for the GPU it aborts: its reason stands above a list of its files
    right = [
        compared(f"rocblas/{name}", [str(program), name], words.target, emulator, "rocBLAS error")
        for name in words.routines.split()
    ]
    right.append(emulator.say_races(words.target))
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
