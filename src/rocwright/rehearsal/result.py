"""What came of a rehearsal, counted: every part tried n of m, with the reason for the rest."""

from __future__ import annotations

from rocbase.model import Frozen
from rocwright.rehearsal.book import PartName

# What is said where nothing could be tried.
NOTHING = "not rehearsed"


class TrialFault(Frozen):
    """Something that did not go well: the edit, the file or what was imported, and what was said."""

    name: str
    detail: str


class TrialTally(Frozen):
    """One kind of trial of a component: `tried` of `all`, what of these failed, and why the rest was not
    tried."""

    part: PartName
    name: str
    tried: int
    all: int
    failed: tuple[TrialFault, ...] = ()
    reasons: tuple[str, ...] = ()

    def __add__(self, other: TrialTally) -> TrialTally:
        """Both together, under the name of the first."""
        return self.model_copy(
            update={
                "tried": self.tried + other.tried,
                "all": self.all + other.all,
                "failed": (*self.failed, *other.failed),
                "reasons": tuple(dict.fromkeys((*self.reasons, *other.reasons))),
            }
        )


class Rehearsed(Frozen):
    """A component of a row: the version that the row has, from where its source was taken, and its parts.

    `on` are the stand-ins, in words, `differs` how they and the source differ from what the row has.
    """

    component: str
    version: str
    source: str = ""
    on: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    tools: dict[str, str] = {}
    parts: tuple[TrialTally, ...] = ()


class RowRehearsed(Frozen):
    """A row, and all of its components that are built; `problem` says why nothing could be tried."""

    row: str
    stack: str
    gpu: str
    base: str
    components: tuple[Rehearsed, ...] = ()
    problem: str = ""

    @property
    def parts(self) -> tuple[TrialTally, ...]:
        return tuple(part for component in self.components for part in component.parts)

    @property
    def tried(self) -> int:
        return sum(part.tried for part in self.parts)

    @property
    def all(self) -> int:
        return sum(part.all for part in self.parts)

    @property
    def failed(self) -> tuple[TrialFault, ...]:
        return tuple(fault for part in self.parts for fault in part.failed)

    @property
    def outcome(self) -> str:
        """How it ended, for the record of its run."""
        return "failed" if self.failed else "rehearsed" if self.tried else NOTHING

    @property
    def word(self) -> str:
        """What may be said of it, and no more."""
        if not self.tried:
            return NOTHING
        counted = f"{self.tried} of {self.all}"
        if self.failed:
            return f"rehearsal failed ({len(self.failed)} of {self.tried} tried)"
        return f"rehearsed in part ({counted})" if self.tried < self.all else f"rehearsed ({counted})"
