"""What to remove where a disk has no room: commands, and what each frees."""

from __future__ import annotations

from pathlib import Path

from rocbase.units import size
from rocwright.cleanup.model import Piece, Reclaimable, oldest, the_kinds
from rocwright.cleanup.room import look
from rocwright.home import Home
from rocwright.store.model import Store

DAYS = 30.0
"""What `clean` keeps where nothing else is said."""


def what_to_free(home: Home, store: Store, keep: set[str], full: Path | None = None) -> str:
    """A line for each command that frees room on the disk of `full` (else of the home folder), the most
    careful first.

    `keep` are the keys that the plans built last need: what they need is in no line.
    """
    known = the_kinds()
    own = tuple(kind.name for kind in known.kind)
    found = look(home, store, keep, 0, (*own, *(tool.name for tool in known.tool))).found
    device = (full or home.path).stat().st_dev
    ours = device == home.path.stat().st_dev
    pieces = [piece for one in found if ours and one.kind in own for piece in one.pieces]
    old = [piece for piece in pieces if piece.used < oldest(DAYS)]
    rows = []
    if old:
        rows.append(("rocwright clean --dry-run", f"{_sum(old)} not used for {DAYS:.0f} days: {_kinds(old)}"))
    if len(pieces) > len(old):
        rows.append(("rocwright clean --keep 0d --dry-run", f"{_sum(pieces)}: {_kinds(pieces)}"))
    rows += [
        (one.command, f"{size(one.size)}: {one.holds}") for one in found if one.outside and _on(one, device)
    ]
    width = max((len(command) for command, _ in rows), default=0)
    lines = [f"{command:<{width}}  frees {what}" for command, what in rows]
    where = full or home.path
    nothing = f"nothing of rocwright or of the caches that it knows can be removed from the disk of {where}"
    return "\n".join(lines or [nothing])


def _sum(pieces: list[Piece]) -> str:
    return size(sum(one.size for one in pieces))


def _kinds(pieces: list[Piece]) -> str:
    """Bytes by kind, the most first."""
    by_kind: dict[str, int] = {}
    for one in pieces:
        by_kind[one.kind] = by_kind.get(one.kind, 0) + one.size
    most = sorted(by_kind, key=lambda kind: -by_kind[kind])
    return ", ".join(f"{kind} {size(by_kind[kind])}" for kind in most)


def _on(one: Reclaimable, device: int) -> bool:
    """Whether a program's cache holds anything on this file system."""
    folders = [Path(piece.name) for piece in one.pieces if piece.size]
    return any(folder.exists() and folder.stat().st_dev == device for folder in folders)
