"""Whether extension modules of installed wheels can be loaded beside torch, and register operators.

loads.py FILE.. takes paths below the folder where the wheels are installed, and prints a line for each:

    ROCWRIGHT-CHECK {"name": ..., "ok": ..., "detail": ..., "device": "cpu"}

Each is loaded in a process of its own, as a symbol that one lacks another may have. The exit status is 0 when
all were loaded, else 1.
"""

from __future__ import annotations

import json
import subprocess
import sys

MARK = "ROCWRIGHT-CHECK "
SECONDS = 300.0
LOAD = """
import sys
from pathlib import Path
import torch
found = [folder for folder in sys.path if Path(folder, sys.argv[1]).is_file()]
before = set(torch._C._dispatch_get_all_op_names())
torch.ops.load_library(str(Path(found[0] if found else ".", sys.argv[1])))
print(len(set(torch._C._dispatch_get_all_op_names()) - before))
"""


def loads(file: str) -> bool:
    """Loads one and prints its line; whether it registered operators."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", LOAD, file],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        ok, detail = False, f"no end after {SECONDS:g} s"
    else:
        said = (done.stdout if done.returncode == 0 else done.stderr).split("\n")
        last = next((line.strip() for line in reversed(said) if line.strip()), "it said nothing")
        ok = done.returncode == 0 and last.isdecimal() and int(last) > 0
        detail = f"{last} operators" if done.returncode == 0 else last[-400:]
    print(
        MARK + json.dumps({"name": f"loads/{file}", "ok": ok, "detail": detail, "device": "cpu"}), flush=True
    )
    return ok


if __name__ == "__main__":
    loaded = [loads(one) for one in sys.argv[1:]]
    sys.exit(0 if all(loaded) else 1)
