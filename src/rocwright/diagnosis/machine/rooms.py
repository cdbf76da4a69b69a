"""What is free where builds really write: the store, the temporary folder, the engines' storage."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from rocwright.diagnosis.facts import HostFacts, Storage
from rocwright.diagnosis.machine.model import FreeSpace, User
from rocwright.diagnosis.machine.tree import Tree


def read_rooms(
    tree: Tree, facts: HostFacts, user: User, home: str, places: Mapping[str, str]
) -> tuple[FreeSpace, ...]:
    """Of `places` (what lies there -> path), and of each engine's storage."""
    rooms = []
    for label, path in (*places.items(), *storages(tree, facts, user.uid, home)):
        room = tree.room(path)
        if room is None:
            continue
        # file systems that make inodes as they go (btrfs) tell none
        inodes = room["inodes"] or None
        rooms.append(
            FreeSpace(
                what=label,
                path=path,
                total=room["total"],
                free=room["free"],
                inodes=inodes,
                inodes_free=room["inodes_free"] if inodes else None,
                device=room["device"],
            )
        )
    return tuple(rooms)


def storages(tree: Tree, facts: HostFacts, uid: int, home: str) -> Iterator[tuple[str, str]]:
    """Where each engine's images lie for this user: what it is, and its path."""
    for storage in facts.storage:
        path = _configured(tree, storage, home) or next(
            (folder for folder in _folders(storage, uid, home) if tree.stat(folder)), ""
        )
        if path:
            yield f"images of {storage.engine}", path


def _folders(storage: Storage, uid: int, home: str) -> Iterator[str]:
    for folder in storage.folders:
        if folder.startswith("~") and uid == 0:
            continue
        yield folder.replace("~", home, 1)


def _configured(tree: Tree, storage: Storage, home: str) -> str:
    """Where a configuration file says, in TOML or JSON."""
    for file in storage.files:
        text = tree.text(file.replace("~", home, 1)) or ""
        if file.endswith(".json"):
            try:
                configuration = json.loads(text or "{}")
            except ValueError:
                continue
            folder = configuration.get(storage.key) if isinstance(configuration, dict) else None
        else:
            match = re.search(rf'^\s*{re.escape(storage.key)}\s*=\s*"([^"]+)"', text, re.MULTILINE)
            folder = match[1] if match else None
        if isinstance(folder, str) and folder.startswith("/"):
            return folder
    return ""
