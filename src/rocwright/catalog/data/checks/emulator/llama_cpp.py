"""Runs llama.cpp with HIP on an emulated GPU: operations against the CPU, then an answer, token by token.

llama_cpp.py --artifact FOLDER --model FILE --operations "NAME[:REGEX]..." --target TARGET --races FILE
    --lds-race BEGINS --race BEGINS -- ..

Each operation goes alone through llama.cpp's own `test-backend-ops`; a regex chooses among its cases by their
parameters. The answer is that of the check that a real GPU gets.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from told import Emulator, arguments, last, say

ANSWERS = Path(__file__).resolve().parents[1] / "llama_cpp" / "check.py"
MARK = "ROCWRIGHT-CHECK "
SECONDS = 1200

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
# what differs is told before the case, in its line
_CASE = re.compile(r"(?:^|  )(?P<case>[A-Z0-9_]+\(.*\)): (?P<outcome>OK|FAIL|not supported \[\w+\])\s*$")


def main() -> int:
    words, emulator = arguments("artifact", "model", "operations")
    folder = Path(words.artifact)
    ok = [operation(folder, one, words.target, emulator) for one in words.operations.split()]
    ok.append(answers(folder, Path(words.model), words.target, emulator))
    ok.append(emulator.say_races(words.target))
    return 0 if all(ok) else 1


def operation(folder: Path, asked: str, target: str, emulator: Emulator) -> bool:
    """Whether the cases of one operation are as on the CPU; prints its line."""
    name, _, regex = asked.partition(":")
    command = [str(folder / "bin" / "test-backend-ops"), "test", "-b", "ROCm0", "-o", name]
    status, told, errors = emulator.run([*command, *(["-p", regex] if regex else [])], SECONDS)
    found = outcomes(told)
    right = sum(outcome == "OK" for _, outcome in found)
    wrong = [case for case, outcome in found if outcome == "FAIL"]
    ok = status == 0 and right > 0 and not wrong
    if ok:
        detail = f"{right} case{'s' * (right > 1)} as on the CPU"
        if others := len(found) - right:
            detail += f", {others} that the backend does not have"
    elif wrong:
        detail = f"{len(wrong)} of {len(found)} cases differ from the CPU: {wrong[0]}"
    else:
        detail = f"ended with {status} after {right} cases: {last(errors or told)}"
    say(f"operation/{name}", ok, detail, target)
    return ok


def outcomes(told: str) -> list[tuple[str, str]]:
    """What test-backend-ops says of each case: OK, FAIL, or that the backend does not have it."""
    lines = map(_CASE.search, _COLOR.sub("", told).splitlines())
    return [(one["case"], one["outcome"]) for one in lines if one]


def answers(folder: Path, model: Path, target: str, emulator: Emulator) -> bool:
    """Whether llama-server gives the CPU's answer, all layers on the emulated GPU; its lines go on."""
    command = [sys.executable, str(ANSWERS), str(folder), str(model), "--backend", "ROCm", "--tokens", "8"]
    # the emulator tried gives NaN where flash attention has many queries; products and softmax take its place
    command += ["--flash-attention", "off"]
    status, told, errors = emulator.run(command, SECONDS)
    lines = [line for line in told.splitlines() if line.startswith(MARK)]
    absent = [
        one["detail"] for one in (json.loads(line.removeprefix(MARK)) for line in lines) if "state" in one
    ]
    if absent or not lines:
        # what it says without a device is nothing about this one
        say("answer", False, absent[0] if absent else f"ended with {status}: {last(errors or told)}", target)
        return False
    for line in lines:
        print(line, flush=True)
    return status == 0


if __name__ == "__main__":
    sys.exit(main())
