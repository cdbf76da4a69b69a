"""What to remove where a disk has no room: commands, and what each frees."""

from __future__ import annotations

from pathlib import Path

from rocbase.units import size
from rocwright.execution.cleanup.model import Piece, Reclaimable, oldest, the_kinds
from rocwright.execution.cleanup.room import look
from rocwright.home import Home
from rocwright.store.model import Store

# What `clean` keeps where nothing else is said.
DAYS = 30.0


def what_to_free(home: Home, store: Store, keep: set[str], full: Path | None = None) -> str:
    """A line for each command that frees room on the disk of `full` (else of the home folder), the most
    careful first.

    `keep` are the keys that the plans built last need: what they need is in no line.
    """
    kinds = the_kinds()
    own = tuple(kind.name for kind in kinds.kind)
    reclaimables = look(home, store, keep, 0, (*own, *(tool.name for tool in kinds.tool))).found
    device = (full or home.path).stat().st_dev
    ours = device == home.path.stat().st_dev
    pieces = [
        piece
        for reclaimable in reclaimables
        if ours and reclaimable.kind in own
        for piece in reclaimable.pieces
    ]
    old = [piece for piece in pieces if piece.used < oldest(DAYS)]
    rows = []
    if old:
        rows.append(("rocwright clean --dry-run", f"{_sum(old)} not used for {DAYS:.0f} days: {_kinds(old)}"))
    if len(pieces) > len(old):
        rows.append(("rocwright clean --keep 0d --dry-run", f"{_sum(pieces)}: {_kinds(pieces)}"))
    rows += [
        (reclaimable.command, f"{size(reclaimable.size)}: {reclaimable.holds}")
        for reclaimable in reclaimables
        if reclaimable.outside and _lies_on(reclaimable, device)
    ]
    width = max((len(command) for command, _ in rows), default=0)
    lines = [f"{command:<{width}}  frees {benefit}" for command, benefit in rows]
    path = full or home.path
    nothing = f"nothing of rocwright or of the caches that it knows can be removed from the disk of {path}"
    return "\n".join(lines or [nothing])


def _sum(pieces: list[Piece]) -> str:
    return size(sum(piece.size for piece in pieces))


def _kinds(pieces: list[Piece]) -> str:
    """Bytes by kind, the most first."""
    by_kind: dict[str, int] = {}
    for piece in pieces:
        by_kind[piece.kind] = by_kind.get(piece.kind, 0) + piece.size
    largest_first = sorted(by_kind, key=lambda kind: -by_kind[kind])
    return ", ".join(f"{kind} {size(by_kind[kind])}" for kind in largest_first)


def _lies_on(reclaimable: Reclaimable, device: int) -> bool:
    """Whether a program's cache holds anything on this file system."""
    folders = [Path(piece.name) for piece in reclaimable.pieces if piece.size]
    return any(folder.exists() and folder.stat().st_dev == device for folder in folders)
