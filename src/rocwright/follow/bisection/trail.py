"""The answers so far, kept on disk: a search that was killed goes on where it was."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from rocbase.files.atomic import write_atomic
from rocbase.model import Frozen
from rocwright.follow.bisection.model import Try


class _SavedTries(Frozen):
    tries: tuple[Try, ...] = ()


class Trail:
    """Answers by the changes that were tried; each is on disk before the next is looked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[tuple[str, ...], Try] = {}
        with contextlib.suppress(OSError, ValidationError):
            saved = _SavedTries.model_validate_json(path.read_bytes())
            self._known = {trial.changes: trial for trial in saved.tries}

    @property
    def tries(self) -> tuple[Try, ...]:
        return tuple(self._known.values())

    def answer(self, changes: tuple[str, ...], make: Callable[[], Try]) -> Try:
        """The answer for these changes, kept from before or made now."""
        if changes not in self._known:
            self._known[changes] = make()
            write_atomic(self.path, _SavedTries(tries=self.tries).model_dump_json(indent=1) + "\n")
        return self._known[changes]

    def forget(self) -> None:
        """Remove it: the search has ended."""
        self.path.unlink(missing_ok=True)
