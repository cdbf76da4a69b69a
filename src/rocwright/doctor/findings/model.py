"""One thing that was found, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from rocbase.model import Frozen
from rocwright.diagnosis.facts import Concern, Grade, HostFacts

ORDER: tuple[Grade, ...] = ("error", "warning", "note", "ok")


class DoctorFinding(Frozen):
    """What was seen, why it matters, to which stacks, and the command that helps (`safe`: harmless)."""

    name: str
    grade: Grade
    what: str
    why: str = ""
    stacks: tuple[str, ...] = ()
    remedy: str = ""
    safe: bool = False
    source: str = ""


def finding_of(
    name: str, grade: Grade, message: str, concern: Concern, stacks: Iterable[str], **places: object
) -> DoctorFinding:
    """A finding with the words of a concern; `places` are filled into its command."""
    remedy = concern.remedy
    for key, value in places.items():
        remedy = remedy.replace(f"{{{key}}}", str(value))
    return DoctorFinding(
        name=name,
        grade=grade,
        what=message,
        why=concern.why,
        stacks=tuple(stack for stack in stacks if concern.concerns(stack)),
        remedy=remedy,
        safe=concern.safe and bool(remedy),
        source=concern.source,
    )


class Say(Protocol):
    """Makes a finding of the advice of that name."""

    def __call__(self, name: str, grade: Grade, message: str, **places: object) -> DoctorFinding: ...


def speaker(facts: HostFacts, stacks: tuple[str, ...]) -> Say:
    """With the catalog's advice, for the stacks that are asked about."""

    def say(name: str, grade: Grade, message: str, **places: object) -> DoctorFinding:
        return finding_of(name, grade, message, facts.advice[name], stacks, **places)

    return say
