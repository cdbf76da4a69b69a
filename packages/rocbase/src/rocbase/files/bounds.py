"""The table of what is read of strangers' files at most: archives, metadata, models, lists, repositories."""

from __future__ import annotations

from dataclasses import dataclass

from rocbase.errors import CheckError

MIB, GIB = 1024**2, 1024**3


class OverBoundError(ValueError):
    """An input is larger than its bound; `member` is the file in it that is too much, if it is one."""

    def __init__(self, reason: str, member: str = "") -> None:
        super().__init__(reason)
        self.member = member


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A kind of input: `size` bytes unpacked, in `members` files; 0 where there is no such bound.

    More than `free` bytes may be unpacked only up to `ratio` times the packed size. A long name, or extended
    attributes, may have `header` bytes: they are held in memory.
    """

    size: int
    free: int = 0
    ratio: int = 0
    members: int = 0
    header: int = MIB

    def size_of(self, packed: int) -> int:
        """Return how many bytes so many packed ones may become."""
        return min(self.size, max(self.free, self.ratio * packed)) if self.ratio else self.size


# The densest sources unpack to 30 times their size, Linux has 90,000 files, LLVM 170,000.
SOURCES = Bound(size=40 * GIB, free=GIB, ratio=200, members=2_000_000)
# rocm/pytorch has 75 GB in 300,000 files; layers of programs unpack to 3 times their size.
LAYERS = Bound(size=96 * GIB, free=512 * MIB, ratio=50, members=600_000, header=64 * 1024)
# Trees and root file systems in a store were packed by rocwright, those of others are signed.
TREES = Bound(size=64 * GIB, members=2_000_000)
# Fedora's list has 250 MiB and 70,000 packages, Debian's unpacks to 7 times its size.
PACKAGE_LISTS = Bound(size=GIB // 2, free=32 * MIB, ratio=50, members=500_000)
# Logs of builds unpack to 10 to 40 times their size.
LOGS = Bound(size=64 * GIB, free=32 * MIB, ratio=100)
# PyPI's largest wheels have 60,000 files; a GPU library unpacks to 20 times its size.
WHEELS = Bound(size=128 * GIB, members=300_000)
# Of an image the name of each file is held: rocm/pytorch has 300,000.
PACKAGES = Bound(size=128 * GIB, members=1_000_000)
# Their releases are far below: LLVM and PyTorch with all submodules pack to 2 GB and have 250,000 files.
GIT = Bound(size=40 * GIB, free=512 * MIB, ratio=50, members=1_000_000)

METADATA = 4 * MIB
"""Bytes of METADATA, WHEEL and other texts of a wheel: the largest METADATA on PyPI has 1 MiB."""

METADATA_LINES = 20_000
"""Lines of their headers, each held by itself: the longest known have 3,000."""

RECORD, RECORD_ROWS = 32 * MIB, WHEELS.members
"""Bytes and rows of RECORD: torch's has 12,000 rows in 1.5 MB."""


def check_text(path: str, size: int, limit: int = 0) -> None:
    """Raise CheckError if a text in a wheel is larger than any real one, or than a given `limit`."""
    limit = limit or (RECORD if path.endswith(".dist-info/RECORD") else METADATA)
    if size > limit:
        raise CheckError(
            f"{path} has {size:,} bytes; at most {limit:,} are read",
            cause="real files of this kind are far smaller: it is damaged, or made to fill the memory",
            next_step="get a fresh copy of the wheel",
            subject=path,
        )
