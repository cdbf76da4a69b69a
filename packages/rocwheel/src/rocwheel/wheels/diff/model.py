"""The words in which a difference is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChange:
    """One thing with its value before and after; "" where there is none."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names of one kind that are in one only: libraries needed, symbols."""

    what: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelChange:
    """A kernel that both have: whether its instructions differ, and which of its numbers."""

    name: str
    instructions: bool
    numbers: tuple[ValueChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeDifference:
    """Code of one target in one file: the code objects that were, that are, and that are in both.

    `silent` counts code objects, of those that differ, that do not tell their kernels.
    """

    target: str
    before: int
    after: int
    same: int
    silent: int
    removed: tuple[str, ...]
    added: tuple[str, ...]
    changed: tuple[KernelChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDifference:
    """A file that both have, or only one; sizes in bytes, None where it is not there."""

    path: str
    before: int | None
    after: int | None
    changes: tuple[ValueChange, ...] = ()
    sections: tuple[ValueChange, ...] = ()
    names: tuple[Names, ...] = ()
    code: tuple[CodeDifference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelDifference:
    """Two wheels. `written` tells how zips with the same content differ, which no installed file shows."""

    same_bytes: bool
    metadata: tuple[ValueChange, ...] = ()
    moved: tuple[ValueChange, ...] = ()
    files: tuple[FileDifference, ...] = ()
    written: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether installing one or the other makes no difference."""
        return not (self.metadata or self.moved or self.files)


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[ValueChange, ...]:
    """What two tables of facts differ in, in their order."""
    names = [*old, *(name for name in new if name not in old)]
    rows = ((name, str(old.get(name, "")), str(new.get(name, ""))) for name in names)
    return tuple(
        ValueChange(what=name, before=old_text, after=new_text)
        for name, old_text, new_text in rows
        if old_text != new_text
    )


def names(subject: str, old: Iterable[str], new: Iterable[str]) -> tuple[Names, ...]:
    """What two sets of names differ in; nothing where they do not."""
    old_names, new_names = frozenset(old), frozenset(new)
    if old_names == new_names:
        return ()
    return (
        Names(
            what=subject,
            removed=tuple(sorted(old_names - new_names)),
            added=tuple(sorted(new_names - old_names)),
        ),
    )
