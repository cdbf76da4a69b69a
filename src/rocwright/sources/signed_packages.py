"""Which packages an archive vouches for: their scripts run as root while a root is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

from filelock import FileLock

from rocbase.errors import CheckError
from rocbase.files.atomic import write_atomic
from rocbase.folders.listing import shown
from rocwright.model.steps import DebianOrigin, FilePin
from rocwright.sources.bases.tools import Tools
from rocwright.sources.debian import DebianArchive

# The file among the private apt folders that has a hash on each line.
KEPT = "signed"


def remember(pins: Iterable[FilePin], apt: Path) -> None:
    """Note packages that apt downloaded: the archive may list others when a root is made of them."""
    with FileLock(apt / f"{KEPT}.lock"):
        remembered = _remembered(apt)
        if new := {pin.sha256 for pin in pins if isinstance(pin.origin, DebianOrigin)} - remembered:
            write_atomic(apt / KEPT, "".join(f"{sha256}\n" for sha256 in sorted(remembered | new)))


def require_signed(files: Mapping[str, str], pins: Iterable[FilePin], tools: Tools) -> None:
    """Raise CheckError if a file is neither in a list that the archive signed nor came from there.

    `files` are names by sha256, `pins` what a lock says of them: it can name any file as a package. The lists
    are those of this machine's apt, which are fetched if need be: raises NetworkError.
    """
    unknown = set(files) - _remembered(tools.home.apt)
    origins = [pin.origin for pin in pins if pin.sha256 in unknown and isinstance(pin.origin, DebianOrigin)]
    for newest in (False, True):
        if unknown:
            unknown -= _signed(origins, tools, newest=newest)
    if unknown:
        names = sorted(files[sha256] for sha256 in unknown)
        raise CheckError(
            f"the archive did not sign {', '.join(map(shown, names[:5]))}",
            cause="their hashes are not in the archive's own lists: the lock is of another day, or somebody "
            "changed it",
            next_step="rocwright lock takes packages that the archive has now",
        )


def _signed(origins: Iterable[DebianOrigin], tools: Tools, *, newest: bool) -> set[str]:
    hashes: set[str] = set()
    for archive, packages in groupby(sorted(origins, key=_archive), key=_archive):
        lists = DebianArchive(tools, *archive)
        if newest:
            lists.refresh()
        hashes |= lists.signed(packages)
    return hashes


def _archive(origin: DebianOrigin) -> tuple[str, str]:
    return origin.suite, origin.architecture


def _remembered(apt: Path) -> set[str]:
    path = apt / KEPT
    return set(path.read_text().split()) if path.exists() else set()
