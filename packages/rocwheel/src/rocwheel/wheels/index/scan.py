"""Which wheels lie in a folder, as its listing shows them: nothing is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from rocwheel.errors import InputError
from rocwheel.wheels.index.examine import Problem, Seen

SUFFIX = ".whl"
MARKER = ".rocwright-index.json"
"""The file that says that a folder is a tree that an index was written to."""

PAGES = "simple"
"""The folder of pages, in an index's root and in that of each view."""

YANKS = "yanked.toml"
"""The file beside the wheels that says which releases are withdrawn."""

MOST_DEEP = 32
"""Folders within folders that are looked into."""


def scan(folder: Path) -> tuple[list[Seen], list[Problem]]:
    """The wheels at any depth, by path, and what is left out.

    Hidden files are left out in silence, since they are being written, and so are links to what lies in the
    folder anyway. Raises InputError where `folder` cannot be read.
    """
    seen: list[Seen] = []
    problems: list[Problem] = []
    root = folder.resolve()
    try:
        _walk(root, "", 0, _own(root), seen, problems)
    except OSError as error:
        raise InputError(
            f"cannot read {folder}: {error.strerror or error}",
            cause="it does not exist, is not a folder, or you have no permission to read it",
            next_step="check the path and its permissions",
            subject=str(folder),
        ) from error
    seen.sort()
    return seen, sorted(problems, key=lambda one: one.path)


def look_at(folder: Path, files: Iterable[Path]) -> tuple[list[Seen], list[Problem], set[str]]:
    """What `scan` would say of these files, whatever else lies there; and the paths of all of them.

    Raises InputError for a file that is not below `folder`, or has not the name of a wheel.
    """
    root = folder.resolve()
    seen: list[Seen] = []
    problems: list[Problem] = []
    paths = {_inside(folder, root, file) for file in files}
    for path in paths:
        try:
            found = (root / path).lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        if _looked_into(root, PurePosixPath(path)):
            _take(root, path, found, seen, problems)
    return sorted(seen), sorted(problems, key=lambda one: one.path), paths


def _inside(folder: Path, root: Path, file: Path) -> str:
    # a link that leads out is told as one: only the folder that it lies in is resolved
    at = file.parent.resolve() / file.name
    if not at.is_relative_to(root) or at.suffix != SUFFIX:
        raise InputError(
            f"{file} is no wheel below {folder}",
            cause="it lies elsewhere, or its name does not end with .whl",
            next_step=f"give wheels that lie in {folder}, or look at all of it: leave --changed out",
            subject=str(file),
        )
    return at.relative_to(root).as_posix()


def _looked_into(root: Path, path: PurePosixPath) -> bool:
    """Whether `scan` comes by a file: it passes hidden ones, the pages of the index, other indexes."""
    own, folders = _own(root), path.parts[:-1]
    return (
        not any(part.startswith(".") for part in path.parts)
        and own.isdisjoint(folders[:2])
        and len(folders) <= MOST_DEEP
        and all(part.isprintable() for part in folders)
        and not any((root.joinpath(*folders[: depth + 1]) / MARKER).exists() for depth in range(len(folders)))
    )


def _walk(
    root: Path, inside: str, depth: int, own: set[str], seen: list[Seen], problems: list[Problem]
) -> None:
    """Look into root/inside; folders named in `own` hold the pages of the index itself, at this depth."""
    folders = []
    with os.scandir(root / inside) as listing:
        for entry in listing:
            name = entry.name
            if name.startswith("."):
                continue
            if name.endswith(SUFFIX):
                _take(root, inside + name, entry.stat(follow_symlinks=False), seen, problems)
            elif entry.is_dir(follow_symlinks=False):
                if name not in own:
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
                # the pages of a view lie one folder deeper
                _walk(root, path, depth + 1, own if depth == 0 else set(), seen, problems)
            except OSError as error:
                problems.append(Problem(path, f"it cannot be read: {error.strerror or error}"))


def _take(root: Path, path: str, found: os.stat_result, seen: list[Seen], problems: list[Problem]) -> None:
    """One file that has the name of a wheel."""
    if not path.rpartition("/")[2].isprintable():
        problems.append(Problem(ascii(path), "its name holds unprintable characters"))
    elif stat.S_ISREG(found.st_mode):
        seen.append(Seen(path, found.st_size, found.st_mtime_ns, found.st_ino))
    elif stat.S_ISLNK(found.st_mode):
        problems += _linked(root, path)
    else:
        problems.append(Problem(path, "it is not a regular file"))


def _own(root: Path) -> set[str]:
    """Folders of an index's own pages."""
    return {PAGES} if (root / MARKER).exists() else set()


def _linked(root: Path, path: str) -> Iterator[Problem]:
    """What to say of a link."""
    try:
        to = (root / path).resolve(strict=True)
    except (OSError, RuntimeError):
        yield Problem(path, "it is a broken link")
        return
    if not to.is_relative_to(root):
        yield Problem(path, "it is a link that leads out of the folder; replace it with the file itself")
