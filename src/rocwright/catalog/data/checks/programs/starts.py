"""Whether the programs of an unpacked archive start: they find their libraries, and end well.

Needs Python 3.11 and nothing else. starts.py FOLDER "PROGRAM ARGUMENTS".. prints a line for each command:

    ROCWRIGHT-CHECK {"name": ..., "ok": ..., "detail": ..., "device": ""}

The exit status is 0 when all started, else 1.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

MARK = "ROCWRIGHT-CHECK "
SECONDS = 120.0


def starts(folder: Path, command: str) -> bool:
    """Runs one program of `bin/` and prints its line; whether it ended with 0 and said something."""
    program, *arguments = shlex.split(command)
    try:
        done = subprocess.run(
            [folder / "bin" / program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        ok, detail = False, f"{command}: no end after {SECONDS:g} s"
    except OSError as error:
        ok, detail = False, f"{command}: {error.strerror}"
    else:
        said = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        ok = done.returncode == 0 and bool(said)
        last = said[-1][:300] if said else "it said nothing"
        detail = f"{command}: {len(said)} lines" if ok else f"{command} ended with {done.returncode}: {last}"
    print(
        MARK + json.dumps({"name": f"starts/{program}", "ok": ok, "detail": detail, "device": ""}), flush=True
    )
    return ok


if __name__ == "__main__":
    started = [starts(Path(sys.argv[1]), one) for one in sys.argv[2:]]
    sys.exit(0 if all(started) else 1)
