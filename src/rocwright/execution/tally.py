"""Counts downloads and installed packages for the line of progress of their steps."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from threading import Event, Thread

from rocbase.units import size
from rocwright.catalog.base import PackageManager
from rocwright.model.steps import FilePin

# Seconds between two lines about the same step.
EVERY = 2.0

# The part of a line by which `RunningStep` knows it.
TALLY = re.compile(
    r"^\[ *\d{1,3}%\] (?P<tally>[\d,]+ of [\d,]+ [a-z]+, \S+ [KMGT]?i?B of \S+ [KMGT]?i?B [a-z]+)$"
)


def tally_line(
    share: float, done: tuple[int, int], noun: str, present: float, total: float, verb: str
) -> str:
    """Return a line that tells how many things and bytes are done of how many, with make's counter."""
    amounts = f"{done[0]:,} of {done[1]:,} {noun}, {size(present)} of {size(total)}"
    return f"[{100 * min(share, 1):3.0f}%] {amounts} {verb}"


@contextmanager
def count_downloads(
    pins: Sequence[FilePin], folders: Iterable[Path], on_line: Callable[[str], None]
) -> Iterator[None]:
    """Print now and then how much of the files is in the folders, until the block ends."""
    ended = Event()
    watcher = Thread(target=_watch, args=(pins, tuple(folders), on_line, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _watch(
    pins: Sequence[FilePin], folders: Sequence[Path], on_line: Callable[[str], None], ended: Event
) -> None:
    total, last = sum(pin.size for pin in pins), 0
    # a program may write a file under another name than the lock's
    sizes = {pin.size for pin in pins}
    while not ended.wait(EVERY):
        present = [length for folder in folders for length in _lengths(folder)]
        # files that are complete go into the store
        if total and sum(present) > last:
            last = sum(present)
            complete = min(sum(length in sizes for length in present), len(pins))
            got = min(last, total)
            on_line(tally_line(got / total, (complete, len(pins)), "files", got, total, "downloaded"))


def _lengths(folder: Path) -> Iterator[int]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    yield status.st_size


@dataclass(slots=True)
class PackageTally:
    """Counts packages by the lines of a package manager, of which each of `phases` has one for each package.

    `sizes` are the bytes of the package files, by their names.
    """

    sizes: Mapping[str, int]
    phases: Sequence[re.Pattern[str]]
    on_line: Callable[[str], None]
    _seen: list[set[str]]
    _told: float = 0

    def note(self, line: str) -> None:
        """Pass a line on, and follow it up with the tally."""
        self.on_line(line)
        for seen, phase in zip(self._seen, self.phases, strict=True):
            if (match := phase.match(line)) and (name := _file_of(match[1], self.sizes)):
                seen.add(name)
                self._tell()

    def _tell(self) -> None:
        unpacked, total = self._seen[0], sum(self.sizes.values())
        finished = sum(self.sizes[name] for seen in self._seen for name in seen)
        if time.monotonic() - self._told < EVERY or not total:
            return
        self._told = time.monotonic()
        present = sum(self.sizes[name] for name in unpacked)
        done = len(unpacked), len(self.sizes)
        share = finished / (total * len(self.phases))
        self.on_line(tally_line(share, done, "packages", present, total, "unpacked"))


def count_packages(
    packages: Sequence[tuple[str, Path]],
    managers: Collection[PackageManager],
    on_line: Callable[[str], None],
) -> Callable[[str], None]:
    """Return what takes the lines of the manager that installs `packages`, and counts those that it names."""
    names = [name for name, _ in packages]
    phases = [
        phase
        for manager in managers
        if any(fnmatch(name, manager.files) for name in names)
        for phase in manager.phases
    ]
    if not phases:
        return on_line
    sizes = {name: path.stat().st_size for name, path in packages}
    return PackageTally(sizes, phases, on_line, [set() for _ in phases]).note


def _file_of(package: str, filenames: Iterable[str]) -> str:
    """Return the file of a package: its name, and then its version."""
    version = re.compile(rf"{re.escape(package)}[_-]\d")
    return min(filter(version.match, filenames), key=len, default="")
