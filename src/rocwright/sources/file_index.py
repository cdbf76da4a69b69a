"""Which packages of a Debian suite have a header, by the index of files that the archive itself publishes.

apt fetches the index (Contents) and checks it against the archive's signed Release file; it lies in the
suite's private apt folder and is fetched only when asked.
"""

from __future__ import annotations

import gzip
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rocbase.errors import InputError, NetworkError
from rocbase.files.atomic import write_atomic
from rocwright.catalog.load import Catalog
from rocwright.model.architecture import Architecture
from rocwright.sources.bases.tools import ARCHIVE, Tools
from rocwright.sources.debian import DebianArchive
from rocwright.sources.patience import within

# Seconds after which an index is fetched anew when it is asked for.
FRESH = 7 * 24 * 3600

# Seconds that fetching an index, and looking in it, may take.
FETCHING, READING = 900.0, 120.0

# Bytes of an index that are read, unpacked; the largest known one has some 1 GiB.
LARGEST_INDEX = 8 * 1024**3

# Bytes of a line that are kept: names of files are far shorter.
LONGEST = 64 * 1024

# Packages that are told, at most.
NAMED = 5

CHUNK = 4 * 1024**2

_HEADER = re.compile(r"(?!.*(?:^|/)\.{1,2}(?:/|$))[A-Za-z0-9_+.-]{1,100}(?:/[A-Za-z0-9_+.-]{1,100}){0,8}")
_LINE = re.compile(rb"(\S+)[ \t]+([a-z0-9+./,_-]+)\s*")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")

_TARGET = "Acquire::IndexTargets::deb::Contents-deb"
_OPTIONS = {
    "Acquire::IndexTargets::deb::Packages::DefaultEnabled": "false",
    "Acquire::IndexTargets::deb::Translations::DefaultEnabled": "false",
    "Acquire::IndexTargets::deb-src::Sources::DefaultEnabled": "false",
    f"{_TARGET}::MetaKey": "$(COMPONENT)/Contents-$(ARCHITECTURE)",
    f"{_TARGET}::ShortDescription": "Contents-$(ARCHITECTURE)",
    f"{_TARGET}::Description": "$(RELEASE)/$(COMPONENT) $(ARCHITECTURE) Contents",
    f"{_TARGET}::PDiffs": "false",
    f"{_TARGET}::KeepCompressed": "true",
    f"{_TARGET}::KeepCompressedAs": "gz",
}


class FileIndex:
    """The index of files of a suite, in its private apt folder."""

    def __init__(self, archive: DebianArchive) -> None:
        self._archive = archive
        self._lists = archive.folder / "contents"

    @property
    def here(self) -> bool:
        """Whether it was fetched before, however old it is."""
        return bool(self._files())

    def refresh(self, clock: Callable[[], float] = time.time) -> None:
        """Fetch it, where there is none or it is old. Raises NetworkError."""
        stamp = self._lists / "fetched"
        if self.here and stamp.exists() and clock() - stamp.stat().st_mtime < FRESH:
            return
        self._archive.prepare()
        (self._lists / "partial").mkdir(parents=True, exist_ok=True)
        options = {**_OPTIONS, "Dir::State::lists": str(ARCHIVE / self._lists.name)}
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        completed = self._archive.apt("apt-get", *words, "update", seconds=within(FETCHING))
        # the index of a suite's updates may be missing, that of the suite may not
        if not self._files():
            errors = [line for line in completed.stderr.splitlines() if line.startswith(("E: ", "W: "))]
            raise NetworkError(
                f"the index of files of Debian {self._archive.suite} could not be fetched",
                cause="no answer in time"
                if completed.timed_out
                else (errors or ["apt told no reason"])[0][:300],
                next_step="check the network and the machine's own apt, then try again",
            )
        write_atomic(stamp, "")

    def packages_with(self, header: str) -> tuple[str, ...]:
        """The packages that have a header of that name below an include folder, the likeliest first.

        () where none has, or the name is none that can be looked up. Raises NetworkError for an index that is
        damaged, or takes too long to read.
        """
        if _HEADER.fullmatch(header) is None:
            return ()
        places: list[tuple[str, str]] = []
        for path in self._files():
            try:
                with gzip.open(path) as opened:
                    places += found_in(_pieces(iter(lambda: opened.read(CHUNK), b"")), header)
            except (OSError, EOFError, zlib.error) as error:
                raise NetworkError(
                    f"the index of files of Debian {self._archive.suite} cannot be read",
                    cause=str(error)[:300],
                    next_step=f"remove {self._lists} and fetch it again",
                ) from error
        return likeliest(places, header)

    def _files(self) -> list[Path]:
        return sorted(self._lists.glob("*_Contents-*.gz"))


def index_of(base: str, catalog: Catalog, tools: Tools, architecture: Architecture) -> FileIndex:
    """The index of files of a base. Raises InputError for a base whose files no index tells here."""
    definition, release = catalog.base(base)
    if definition.made != "packages":
        raise InputError(
            f"{base} has no index of files that can be looked into from outside",
            cause="only the archive of a base that is made of Debian's packages is read",
            next_step="ask its package manager inside (apt-file search, dnf provides, pacman -F)",
        )
    archive = DebianArchive(
        tools, release.name, definition.architecture[architecture], over=release.over, takes=release.takes
    )
    return FileIndex(archive)


def found_in(pieces: Iterable[bytes], header: str) -> Iterator[tuple[str, str]]:
    """(path, package) of each file of an index whose path ends with that name. Pieces need not be lines."""
    suffix = f"/{header}".encode()
    remainder = b""
    for piece in pieces:
        complete, cut, tail = (remainder + piece).rpartition(b"\n")
        remainder = tail[-LONGEST:]
        yield from _in_lines(complete + cut, suffix)
    yield from _in_lines(remainder, suffix)


def _in_lines(lines: bytes, suffix: bytes) -> Iterator[tuple[str, str]]:
    position = lines.find(suffix)
    while position >= 0:
        begin, end = lines.rfind(b"\n", 0, position) + 1, lines.find(b"\n", position)
        end = len(lines) if end < 0 else end
        line = _LINE.fullmatch(lines[begin:end]) if end - begin <= LONGEST else None
        if line is not None and line[1].endswith(suffix):
            path = line[1].decode(errors="replace")
            for place in line[2].decode().split(","):
                package = place.rpartition("/")[2]
                if _PACKAGE.fullmatch(package):
                    yield path, package
        position = lines.find(suffix, end)


def likeliest(places: Iterable[tuple[str, str]], header: str) -> tuple[str, ...]:
    """The packages that have the header nearest to the usual include folder; a few of them."""
    ranked: dict[str, tuple[int, bool, str]] = {}
    for path, package in places:
        folder = path.removesuffix(header).strip("/").split("/")
        if "include" not in folder:
            continue
        rank = (len(folder), not package.endswith("-dev"), package)
        ranked[package] = min(rank, ranked.get(package, rank))
    nearest = min((rank[0] for rank in ranked.values()), default=0)
    near = [package for package, rank in ranked.items() if rank[0] == nearest]
    return tuple(sorted(near, key=ranked.__getitem__)[:NAMED])


def _pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces as they come. Raises OSError where they are too many, or come too slowly."""
    began, size = time.monotonic(), 0
    for piece in pieces:
        size += len(piece)
        if size > LARGEST_INDEX or time.monotonic() - began > READING:
            raise OSError(f"it is too large to be read: {size:,} bytes in {READING:.0f} s were")
        yield piece
