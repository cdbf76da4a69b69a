"""Runs operations of the torch suite on an emulated GPU, at its smallest size.

torch_operations.py --suites NAMES --only "GROUP[/NAME]..." --target TARGET --races FILE --lds-race BEGINS
    --race BEGINS -- ..

The suite compares each with the CPU as it does on a real GPU; its lines go on.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from told import arguments, last, say

SUITE = Path(__file__).resolve().parents[1] / "torch" / "suite.py"
MARK = "ROCWRIGHT-CHECK "
SECONDS = 3000
"""For a group of operations; one of them may take a third of it."""


def main() -> int:
    words, emulator = arguments("suites", "only")
    command = [
        sys.executable,
        str(SUITE),
        *words.suites.split(),
        "--device",
        "cuda",
        "--size",
        "small",
        "--marks",
    ]
    command += ["--operation-seconds", str(SECONDS // 3), "--group-seconds", str(SECONDS)]
    ok = []
    # each group in a process of its own: what one leaves on the emulated GPU is not in the way of the next
    for one in words.only.split():
        status, told, errors = emulator.run([*command, "--only", one], SECONDS + 60)
        lines = [line for line in told.splitlines() if line.startswith(MARK)]
        for line in lines:
            print(line, flush=True)
        if not lines:
            say(one, False, f"ended with {status}: {last(errors or told)}", words.target)
        ok.append(status == 0 and bool(lines))
    ok.append(emulator.say_races(words.target))
    return 0 if all(ok) else 1


if __name__ == "__main__":
    sys.exit(main())
