"""What slimming did, file by file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A file that is smaller now, or went: its bytes before and after, and bytes of code by target.

    `debug` counts bytes of debug sections that went; `why` says of what kind a file was that went as a whole.
    """

    path: str
    before: int
    after: int
    stayed: Mapping[str, int] = field(default_factory=dict)
    went: Mapping[str, int] = field(default_factory=dict)
    debug: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlimReport:
    """The result: where it lies, its size in bytes before and after, and what was changed.

    `version` is that of the new wheel, "" for anything else. `left` names files whose GPU code was left, with
    the reason; `missing` files and folders without code for a wanted target, where that was allowed.
    """

    out: Path
    version: str = ""
    before: int = 0
    after: int = 0
    changed: tuple[Changed, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
