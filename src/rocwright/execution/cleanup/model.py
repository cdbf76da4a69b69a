"""Kinds of things that take room, as the catalog tells them, and what was found of each."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

from rocbase.model import Frozen
from rocbase.toml.read import Reader
from rocwright.catalog.folders import catalog_folders
from rocwright.store.gc import DAY, Rubbish, folder_size


class CleanupKind(Frozen):
    """Things in the home folder, in the parts of it where it `lies`; `steps` are the kinds of steps whose
    outputs they are."""

    name: str
    holds: str
    lies: tuple[str, ...]
    again: str
    steps: tuple[str, ...] = ()


class KeptPart(Frozen):
    """A part of the home folder that no clean-up touches, and why."""

    name: str
    why: str


class CachingTool(Frozen):
    """A program with a cache of its own: the commands that tell its folder and empty it."""

    name: str
    holds: str
    again: str
    folder: tuple[str, ...]
    clear: tuple[str, ...]
    source: tuple[str, ...]


class Engine(Frozen):
    """Images of a container engine: the commands that find them, describe and remove them.

    Without `inspect`, `find` gives the lines that it gives otherwise: id, size and when it was made.
    """

    name: str
    holds: str
    again: str
    find: tuple[str, ...]
    inspect: tuple[str, ...] = ()
    remove: tuple[str, ...]
    source: tuple[str, ...]


class Kinds(Frozen):
    """All that `clean` knows."""

    kind: tuple[CleanupKind, ...] = ()
    kept: tuple[KeptPart, ...] = ()
    tool: tuple[CachingTool, ...] = ()
    engine: tuple[Engine, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (
            *(kind.name for kind in self.kind),
            *(tool.name for tool in self.tool),
            *(engine.name for engine in self.engine),
        )


class Piece(Frozen):
    """Something that may go as one: of which kind, its name, bytes, and last use in seconds since 1970.

    `of` is the stack that it was made for, where that is told.
    """

    kind: str
    name: str
    size: int
    used: float
    of: str = ""


class Reclaimable(Frozen):
    """What there is of a kind: bytes, how many things, the last use; and the pieces of it that may go.

    `seconds` is what it took to make them; `command` removes them; `why` says why nothing could be found out.
    """

    kind: str
    holds: str
    again: str
    size: int = 0
    count: int = 0
    used: float = 0
    seconds: float = 0
    command: str = ""
    outside: bool = False
    why: str = ""
    pieces: tuple[Piece, ...] = ()


class DiskSpace(Frozen):
    """What was found in all kinds looked at, and what of the store and its folders is rubbish."""

    found: tuple[Reclaimable, ...]
    rubbish: Rubbish
    days: float

    @property
    def size(self) -> int:
        return sum(reclaimable.size for reclaimable in self.found)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All that may go, the oldest use first."""
        return tuple(
            sorted(
                (piece for reclaimable in self.found for piece in reclaimable.pieces),
                key=lambda piece: piece.used,
            )
        )


@cache
def the_kinds() -> Kinds:
    """The kinds that the catalog knows. Raises InputError where a table is wrong."""
    reader = Reader(catalog_folders())
    tables = [reader.model(Kinds, reader.data(path), path) for path in reader.layers("clean.toml")]
    valid = [table for table in tables if table]
    return Kinds(
        kind=tuple(kind for table in valid for kind in table.kind),
        kept=tuple(part for table in valid for part in table.kept),
        tool=tuple(tool for table in valid for tool in table.tool),
        engine=tuple(engine for table in valid for engine in table.engine),
    )


def oldest(days: float) -> float:
    """The time, in seconds since 1970, before which things are older than `days`."""
    return time.time() - days * DAY


def staying(home: Path) -> tuple[tuple[KeptPart, int], ...]:
    """What no clean-up touches of what is in the home folder now, with its bytes."""
    places = ((part, home / part.name) for part in the_kinds().kept)
    return tuple((part, folder_size(path)) for part, path in places if path.exists())


def chosen(room: DiskSpace, at_most: int | None) -> tuple[Piece, ...]:
    """What goes: all that may, or the oldest use first until what is left takes `at_most` bytes."""
    if at_most is None:
        return room.pieces
    remaining, going = room.size, []
    for piece in room.pieces:
        if remaining <= at_most:
            break
        remaining -= piece.size
        going.append(piece)
    return tuple(going)
