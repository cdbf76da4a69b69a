"""Where a written index lies, by what a user says: a folder, or the URL of an object store."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from rocwheel.wheels.index.tree import FolderTree, Tree


def open_tree(place: str) -> Tree:
    """The tree at a folder's path, a file:// URL, or the URL of an object store. Raises InputError."""
    if "://" not in place:
        return FolderTree(Path(place))
    if place.startswith("file:///"):
        return FolderTree(Path(unquote(urlsplit(place).path)))
    from rocwheel.wheels.index.objects import ObjectTree

    return ObjectTree(place)
