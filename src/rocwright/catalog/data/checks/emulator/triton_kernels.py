"""Compiles the kernels of the Triton suite for an emulated GPU, and runs each there against numpy.

triton_kernels.py --target TARGET --races FILE --lds-race BEGINS --race BEGINS -- EMULATOR ..
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from told import arguments, compared

FOLDER = Path(__file__).resolve().parents[1] / "triton"
SUITE, LAUNCH = FOLDER / "suite.py", FOLDER / "launch.py"


def main() -> int:
    words, emulator = arguments()
    folder = Path.cwd() / "kernels"
    suite = subprocess.run(
        [sys.executable, str(SUITE), "--out", str(folder), "--target", f"{words.target}:32"], check=False
    )
    if suite.returncode:
        return suite.returncode
    sys.path.insert(0, str(FOLDER))
    from kernels import KERNELS

    right = [
        compared(kernel.name, [sys.executable, str(LAUNCH), str(folder), kernel.name], words.target, emulator)
        for kernel in KERNELS
    ]
    right.append(emulator.say_races(words.target))
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
