"""A look at a folder of wheels: new files are read, the others are known by size, time and inode."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rocbase.errors import InputError
from rocwheel.wheels.index.model import MARKER, YANKS, FileFingerprint, Listed, Problem, Wheel

SUFFIX = ".whl"

MOST_DEEP = 32
"""Folders within folders that are looked into."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The wheels of a folder by path, its withdrawn releases, the files left out, and how many were read."""

    wheels: tuple[Wheel, ...]
    yanks: Mapping[tuple[str, str], str]
    problems: tuple[Problem, ...]
    read: int

    @property
    def projects(self) -> dict[str, list[Listed]]:
        """The wheels of each project, each file name once."""
        names: set[str] = set()
        projects: dict[str, list[Listed]] = {}
        for wheel in self.wheels:
            if wheel.filename not in names:
                names.add(wheel.filename)
                yanked = self.yanks.get(_release(wheel))
                projects.setdefault(wheel.project, []).append(Listed(wheel, yanked))
        return dict(sorted(projects.items()))


def look(
    folder: Path,
    previous: Iterable[Wheel] = (),
    progress: Progress = lambda completed, total: None,
    *,
    by_gpu: bool = True,
) -> Look:
    """Read a folder's wheels that are not among `previous`. Raises InputError if it cannot be read."""
    have = {wheel.seen: wheel for wheel in previous}
    files, problems = scan(folder)
    new = [file for file in files if file not in have]
    wheels = [have[file] for file in files if file in have]
    for result in _examined(folder, new, progress, by_gpu):
        if isinstance(result, Wheel):
            wheels.append(result)
        else:
            problems.append(result)
    wheels.sort(key=lambda wheel: wheel.seen.path)
    yanks = _yanks(folder)
    problems += [*_conflicts(wheels), *_unused(wheels, yanks)]
    problems.sort(key=lambda problem: problem.path)
    return Look(wheels=tuple(wheels), yanks=yanks, problems=tuple(problems), read=len(new))


def _examined(
    folder: Path, new: list[FileFingerprint], progress: Progress, by_gpu: bool
) -> Iterator[Wheel | Problem]:
    if not new:
        return
    # what reads wheels takes longer to load than a look that finds nothing new
    from concurrent.futures import ThreadPoolExecutor

    from rocwheel.wheels.index.examine import examine

    stop = threading.Event()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        try:
            results = pool.map(partial(examine, folder, by_gpu=by_gpu, stopped=stop.is_set), new)
            for completed, result in enumerate(results, 1):
                progress(completed, len(new))
                yield result
        finally:
            # after Ctrl-C the pool would wait for the largest wheel
            stop.set()
            pool.shutdown(cancel_futures=True)


def _conflicts(wheels: list[Wheel]) -> Iterator[Problem]:
    first: dict[str, Wheel] = {}
    for wheel in wheels:
        listed = first.setdefault(wheel.filename, wheel)
        if listed.sha256 != wheel.sha256:
            yield Problem(
                wheel.seen.path,
                f"{listed.seen.path} has the same name, other content, and is the one listed; remove one",
            )


def _yanks(folder: Path) -> Mapping[tuple[str, str], str]:
    if not (folder / YANKS).exists():
        return {}
    from rocwheel.wheels.index.yanks import read_yanks

    return read_yanks(folder)


def _unused(wheels: list[Wheel], yanks: Mapping[tuple[str, str], str]) -> Iterator[Problem]:
    releases = {_release(wheel) for wheel in wheels} if yanks else set()
    for project, version in yanks.keys() - releases:
        yield Problem(YANKS, f"it yanks {project} {version}, but the folder has no such wheel")


def _release(wheel: Wheel) -> tuple[str, str]:
    from packaging.utils import canonicalize_version

    return wheel.project, canonicalize_version(wheel.version)


def scan(folder: Path) -> tuple[list[FileFingerprint], list[Problem]]:
    """Return the wheels at any depth, by path, and the files that are left out. Nothing is opened.

    Hidden files are left out in silence, since they are being written, and so are links to files of the
    folder and the pages of indexes. Raises InputError if `folder` cannot be read.
    """
    files: list[FileFingerprint] = []
    problems: list[Problem] = []
    root = folder.resolve()
    try:
        _walk(root, "", 0, files, problems)
    except OSError as error:
        raise InputError(
            f"cannot read {folder}: {error.strerror or error}",
            cause="it does not exist, is not a folder, or you have no permission to read it",
            next_step="check the path and its permissions",
            subject=str(folder),
        ) from error
    return sorted(files), problems


def _walk(root: Path, inside: str, depth: int, files: list[FileFingerprint], problems: list[Problem]) -> None:
    """Look into root/inside."""
    folders = []
    with os.scandir(root / inside) as listing:
        for entry in listing:
            name = entry.name
            if name.startswith("."):
                continue
            if name.endswith(SUFFIX):
                _take(root, inside + name, entry.stat(follow_symlinks=False), files, problems)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(inside + name + "/")
            elif entry.is_symlink() and entry.is_dir():
                problems += _linked(root, inside + name)
    for path in folders:
        if not path.isprintable():
            problems.append(Problem(ascii(path), "its name holds unprintable characters"))
        elif depth == MOST_DEEP:
            problems.append(Problem(path, f"it lies more than {MOST_DEEP} folders deep"))
        elif not (root / path / MARKER).exists():
            try:
                _walk(root, path, depth + 1, files, problems)
            except OSError as error:
                problems.append(Problem(path, f"it cannot be read: {error.strerror or error}"))


def _take(
    root: Path, path: str, status: os.stat_result, files: list[FileFingerprint], problems: list[Problem]
) -> None:
    """Take one file that has the name of a wheel."""
    if not path.rpartition("/")[2].isprintable():
        problems.append(Problem(ascii(path), "its name holds unprintable characters"))
    elif stat.S_ISREG(status.st_mode):
        files.append(FileFingerprint(path, status.st_size, status.st_mtime_ns, status.st_ino))
    elif stat.S_ISLNK(status.st_mode):
        problems += _linked(root, path)
    else:
        problems.append(Problem(path, "it is not a regular file"))


def _linked(root: Path, path: str) -> Iterator[Problem]:
    """Report a link that is broken or leads out of the folder."""
    try:
        target = (root / path).resolve(strict=True)
    except (OSError, RuntimeError):
        yield Problem(path, "it is a broken link")
        return
    if not target.is_relative_to(root):
        yield Problem(path, "it is a link that leads out of the folder; replace it with the file itself")
