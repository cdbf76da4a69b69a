"""What earlier looks have seen: how long each source took, and days that do not change any more."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from rocbase.files.atomic import write_atomic
from rocbase.model import Frozen

# Entries of each kind that are kept, the newest.
ENTRY_LIMIT = 5000


class Memory(Frozen):
    """`seconds` by source; `days` (ISO 8601) by the question that told them. Losing it costs time only."""

    seconds: dict[str, float] = {}
    days: dict[str, str] = {}

    @classmethod
    def load(cls, path: Path) -> Memory:
        """What is kept there; nothing where it cannot be read."""
        with contextlib.suppress(OSError, ValidationError):
            return cls.model_validate_json(path.read_bytes())
        return cls()

    def and_more(self, seconds: Mapping[str, float], days: Mapping[str, str]) -> Memory:
        """With what was seen now."""
        return Memory(
            seconds=dict(list((self.seconds | dict(seconds)).items())[-ENTRY_LIMIT:]),
            days=dict(list((self.days | dict(days)).items())[-ENTRY_LIMIT:]),
        )

    def save(self, path: Path) -> None:
        """Whole or not at all; a disk that is full or read-only costs time only."""
        with contextlib.suppress(OSError):
            write_atomic(path, self.model_dump_json())
