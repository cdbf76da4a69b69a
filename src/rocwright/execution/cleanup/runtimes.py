"""What `rocwright run` made: unpacked programs of servers, and environments of wheel stacks."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from rocwright.execution.cleanup.model import CleanupKind, Piece, Reclaimable, oldest
from rocwright.home import Home
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.gc import folder_size

ABOUT_ENVIRONMENT = "environment.json"
_GOING = ".going-"
_ESCAPED = re.compile(rb"\\([0-7]{3})")
_YOUNG = 1.0
"""Days in which what has no name yet may be being made."""


def find_runtimes(kind: CleanupKind, place: Path, days: float, stack: str = "") -> Reclaimable:
    """What lies in `place` and was not used for so many days, or is of a `stack` and in use by nothing."""
    paths = [*_things(place)]
    busy = shown_in_sandboxes(place)
    made_for = {path: _stack_of(path) for path in paths}
    every = {
        path: Piece(
            kind=kind.name, name=str(path), size=folder_size(path), used=_used(path), of=made_for[path]
        )
        for path in paths
        if not stack or made_for[path] == stack
    }
    return Reclaimable(
        kind=kind.name,
        holds=kind.holds,
        again=kind.again,
        size=sum(piece.size for piece in every.values()),
        count=len(every),
        used=max((piece.used for piece in every.values()), default=0),
        pieces=tuple(
            piece
            for path, piece in every.items()
            if path.name not in busy
            and (stack or piece.used < oldest(max(days, _YOUNG) if path.name.startswith(".") else days))
        ),
    )


def remove_runtime(path: Path) -> bool:
    """Remove what `find_runtimes` found; False where something runs in it by now, or makes it."""
    if path.is_file():
        path.unlink(missing_ok=True)
        return True
    lock = FileLock(path.with_name(f"{path.name}.lock"))
    with contextlib.suppress(Timeout, FileNotFoundError), lock.acquire(blocking=False):
        # nothing starts in what has no name any more; what started before is seen now
        going = path.rename(path.with_name(f"{_GOING}{path.name}"))
        if {path.name, going.name} & shown_in_sandboxes(path.parent):
            going.rename(path)
            return False
        remove_tree(going)
        for end in (".lock", ".json"):
            path.with_name(f"{path.name}{end}").unlink(missing_ok=True)
        return True
    return False


def shown_in_sandboxes(place: Path) -> set[str]:
    """Names in a folder that a running process of this machine sees as mounts: as the kernel tells, whoever
    started it. One of the same name elsewhere counts too: what the kernel tells is a path within a disk."""
    names: set[str] = set()
    prefix = os.fsencode(f"/{place.name}/")
    for table in Path("/proc").glob("[0-9]*/mountinfo"):
        with contextlib.suppress(OSError):
            for line in table.read_bytes().splitlines():
                root = _ESCAPED.sub(lambda match: bytes([int(match[1], 8)]), line.split(b" ")[3])
                if prefix in root:
                    names.add(os.fsdecode(root.rpartition(prefix)[2].split(b"/")[0]))
    return names


def _things(place: Path) -> Iterator[Path]:
    """Programs, environments, and notes of what was asked for; what is going or half made is a thing too."""
    for path in sorted(place.glob("*")):
        if path.is_symlink() or not path.is_dir():
            continue
        if path.name == "asked":
            yield from sorted(path.glob("*.json"))
        else:
            yield path


def _used(path: Path) -> float:
    """When it was started last: each start sets the time of its folder."""
    return path.lstat().st_mtime


def _stack_of(path: Path) -> str:
    """The stack that it was made for; "" where nothing says so."""
    for description in (path.with_name(f"{path.name}.json"), path / ABOUT_ENVIRONMENT):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            return str(json.loads(description.read_bytes()).get("stack", ""))
    return ""


def place_of(kind: CleanupKind, home: Home) -> Path:
    """The folder of a kind of runtimes."""
    return {"programs": home.programs, "environments": home.environments}[kind.name]
