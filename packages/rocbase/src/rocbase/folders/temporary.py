"""Temporary folders that are known to be in use, so that those of a run that was killed can be removed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rocbase.folders.removal import remove_tree
from rocbase.processes.outlive import FOLDER, PREFIX, SUFFIX


@contextlib.contextmanager
def temporary_folder(purpose: str, *, place: Path | None = None) -> Iterator[Path]:
    """A new folder `rocwright-PURPOSE-...tmp` in the system's place for temporary files, or in `place`; at
    the end it goes, whatever a step left in it.

    It is locked until then: a lock goes with its process, however that ends, and tells so in every namespace.
    What removes those of tempfile fails for deep folders, and changes modes through links.
    """
    folder, descriptor = _locked(purpose, place)
    try:
        yield folder
    finally:
        remove_tree(folder)
        os.close(descriptor)


def temporary_places() -> tuple[Path, ...]:
    """Where the system has temporary files."""
    return Path(tempfile.gettempdir()), Path("/var/tmp")  # noqa: S108 - only what is ours is touched there


def sweep_temporary(*places: Path) -> list[Path]:
    """Remove the caller's temporary folders that nobody holds any more; gives their paths.

    Nobody else's are touched, and no link is followed.
    """
    removed: list[Path] = []
    for place in places or temporary_places():
        with contextlib.suppress(OSError):
            removed += [path for path in sorted(place.glob(f"{PREFIX}*{SUFFIX}")) if _removed(path)]
    return removed


def _locked(purpose: str, place: Path | None) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-", suffix=SUFFIX, dir=place))
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(folder, FOLDER)
            if _lock(descriptor, or_else=True) and os.fstat(descriptor).st_nlink:
                return folder, descriptor
            # whoever sweeps came between
            os.close(descriptor)


def _removed(path: Path) -> bool:
    try:
        descriptor = os.open(path, FOLDER)
    except OSError:
        return False
    try:
        ours = os.fstat(descriptor).st_uid == os.geteuid()
        return ours and _lock(descriptor, or_else=False) and remove_tree(path)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, or_else: bool) -> bool:
    """Whether a folder is locked by this process now; `or_else` where its file system knows no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return or_else
    return True
