"""Explains why the lists of a Debian archive cannot be had: the disk, a program, its keys, or the network."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from rocbase.errors import ExplainedError, InputError, NetworkError, OutOfDiskError, SandboxError
from rocbase.processes.run import Finished

# Bytes with which not even the keys of an archive can be read.
_NO_ROOM = 2**20
_KEYS = re.compile(
    r"NO_PUBKEY|public key is not available|keyring.*(?:not found|No such file|does not exist)"
)
_PROGRAM = re.compile(r"^E: (?:need|cannot find) |: (?:command )?not found$", re.MULTILINE)

SILENT = "no answer in time"


def archive_failure(problem: str, completed: Finished, folder: Path, next_step: str) -> ExplainedError:
    """Return the failure of a program of apt that had `folder` to write to, in the class of what failed."""
    output = completed.stderr
    cause = SILENT if completed.timed_out else last_error(output)
    full = [
        place for place in (folder, Path(os.environ.get("TMPDIR", tempfile.gettempdir()))) if _is_full(place)
    ]
    if full or "No space left on device" in output or "Disk quota exceeded" in output:
        return OutOfDiskError(
            problem,
            cause=f"the disk of {full[0]} is full" if full else cause,
            next_step="free some disk space (rocwright clean --dry-run lists what can be removed), or set "
            "ROCWRIGHT_HOME and TMPDIR to a larger disk",
        )
    if completed.returncode == 127 or _PROGRAM.search(output):
        return InputError(problem, cause=cause, next_step="install what the cause names; rocwright doctor")
    if _KEYS.search(output):
        return InputError(
            problem, cause=cause, next_step="install the archive's keys (package debian-archive-keyring)"
        )
    if "unshare: " in output:
        return SandboxError(
            problem, cause=cause, next_step="let users make user namespaces: rocwright doctor shows how"
        )
    return NetworkError(problem, cause=cause, next_step=next_step)


def last_error(output: str) -> str:
    """Return the last line in which apt reports an error."""
    errors = [line for line in output.splitlines() if line.startswith("E:")]
    return (errors or output.strip().splitlines() or ["no message"])[-1].removeprefix("E:").strip()


def _is_full(place: Path) -> bool:
    existing = next(path for path in (place, *place.parents) if path.exists())
    return shutil.disk_usage(existing).free < _NO_ROOM
