"""What was made safe against a power cut before it was given its name."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass
class Order:
    """The syncs and renames of a test, in order: what, the inode, and its size in bytes then."""

    calls: list[tuple[str, int, int]] = field(default_factory=list)

    def check(self, path: Path, *, folder: bool) -> None:
        """A file had all its bytes synced before it came to lie at `path`, and then its folder, if wanted."""
        found, above = path.stat(), path.parent.stat().st_ino
        renamed = self.calls.index(("rename", found.st_ino, found.st_size))
        assert ("fsync", found.st_ino, found.st_size) in self.calls[:renamed], self.calls
        if folder:
            assert above in [inode for what, inode, _ in self.calls[renamed:] if what == "fsync"], self.calls


def watch(monkeypatch: pytest.MonkeyPatch) -> Order:
    """Note all syncs and renames from now on; they are made all the same."""
    order = Order()
    sync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        sync(descriptor)
        told = os.fstat(descriptor)
        order.calls.append(("fsync", told.st_ino, told.st_size))

    def renamed(source: str | Path, target: str | Path) -> None:
        told = Path(source).lstat()
        order.calls.append(("rename", told.st_ino, told.st_size))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    for name in ("replace", "rename"):
        monkeypatch.setattr(os, name, renamed)
    return order
