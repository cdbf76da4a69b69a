"""What an init system says of a unit: told once, until a cycle of its folder ends again."""

from __future__ import annotations

from pathlib import Path

from rocwright.notify.changes import UNIT
from rocwright.notify.model import Fact
from rocwright.records.model import now


def failure_of(what: str, folder: Path) -> Fact:
    """That a unit which works in a folder failed."""
    where, at = str(folder.resolve()), now()
    detail = (f"in {where}", f"journalctl --user -u {what}")
    return Fact(f"{UNIT}{where}", f"failed {at}", at, what, detail=detail)
