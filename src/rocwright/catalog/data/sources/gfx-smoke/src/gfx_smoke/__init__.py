"""Runs the HIP program inside this package: `gfx_smoke.run()` for its report, `gfx-smoke` for its table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parent / "bin" / "gfx-smoke"
NO_USABLE_GPU = 2
LOADER_FAILED = 127


class ProgramError(RuntimeError):
    """The program gave no report: it could not be loaded, or it was ended by a signal."""


def run(device: int = 0, scale: float = 1) -> dict[str, Any]:
    """The program's report on GPU `device` (see `exit` and `error` in it). Raises ProgramError.

    `scale` is the part of the work that is done, above 0 and at most 1.
    """
    done = subprocess.run(
        [PROGRAM, "--json", "--device", str(device), "--scale", str(scale)],
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
    )
    try:
        report = json.loads(done.stdout)
    except ValueError:
        raise ProgramError(_why_no_report(done.returncode, done.stderr)) from None
    if not isinstance(report, dict):
        raise ProgramError("the program's report is not a JSON object")
    return report


def main() -> None:
    """The command `gfx-smoke`: hands its arguments to the program and ends with the program's exit status."""
    try:
        done = subprocess.run(
            [PROGRAM, *sys.argv[1:]], check=False, stderr=subprocess.PIPE, text=True, errors="replace"
        )
    except KeyboardInterrupt:
        sys.exit(130)
    if done.returncode == LOADER_FAILED:
        print(f"gfx-smoke: {_why_no_report(done.returncode, done.stderr)}", file=sys.stderr)
        sys.exit(NO_USABLE_GPU)
    sys.stderr.write(done.stderr)
    if done.returncode < 0:
        print(f"gfx-smoke: {_why_no_report(done.returncode, '')}", file=sys.stderr)
    sys.exit(done.returncode if done.returncode >= 0 else 3)


def _why_no_report(code: int, stderr: str) -> str:
    if code == LOADER_FAILED:
        return (
            f"the program could not be loaded: {stderr.strip()}\n"
            "  cause   the HIP runtime that it was built with is missing, or is of another major version\n"
            "  next    install that runtime (libamdhip64), or add its folder to LD_LIBRARY_PATH"
        )
    if code < 0:
        return f"the program was ended by signal {-code}; the driver's log (dmesg) may say why"
    return f"the program ended with status {code} and no report: {stderr.strip()}"
