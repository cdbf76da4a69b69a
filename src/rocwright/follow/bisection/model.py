"""What a search for a culprit says: the failure, each try, and what was found."""

from __future__ import annotations

import re

from rocbase.errors import ExplainedError, FailureClass
from rocbase.model import Frozen
from rocwright.follow.bisection.pins import Pin
from rocwright.follow.bisection.search import TrialAnswer

# Failures that may be the machine's: they answer nothing, and end a search.
MACHINE = frozenset(
    {
        FailureClass.OUT_OF_MEMORY,
        FailureClass.OUT_OF_DISK,
        FailureClass.DISK,
        FailureClass.NETWORK,
        FailureClass.SANDBOX,
        FailureClass.INTERNAL,
        FailureClass.INTERRUPTED,
    }
)


class Failure(Frozen):
    """What breaks: the step (or `verify/COMPONENT/CHECK`), the class, the known issue, the first error."""

    step: str
    failure: str
    issue: str = ""
    what: str = ""
    first: str = ""
    detail: str = ""

    @classmethod
    def of(cls, step: str, error: ExplainedError) -> Failure:
        """The failure that an error tells."""
        return cls(
            step=step,
            failure=error.failure.value,
            issue=error.issue,
            what=error.message,
            first=error.cause,
            detail=error.detail,
        )

    def same(self, failure: Failure) -> bool:
        """Whether two failures are one, as far as their words tell: numbers and folders may differ."""
        return self._signature == failure._signature

    @property
    def _signature(self) -> tuple[str, ...]:
        return (self.step, self.failure, self.issue or re.sub(r"\S*/|\d+", "", self.first))


class Try(Frozen):
    """A set of changes that was tried, by their labels (or a commit), and the answer.

    `built` tells that something ran for it; without it the store, or an earlier try, had the answer.
    """

    changes: tuple[str, ...]
    answer: TrialAnswer
    built: bool
    seconds: float = 0
    says: str = ""


class Suspect(Frozen):
    """A commit: its full id, its title, its author's date."""

    commit: str
    title: str
    date: str


class Narrowed(Frozen):
    """Where within a component the change lies: the first bad commit, or, where some could not be built, the
    commits of which one is it. `why_not` says why nobody looked."""

    component: str
    url: str = ""
    good: str = ""
    bad: str = ""
    suspects: tuple[Suspect, ...] = ()
    why_not: str = ""


class BisectionReport(Frozen):
    """The answer: which changes fail together, and within them which packages and commits."""

    failure: Failure
    changes: tuple[Pin, ...]
    irrelevant: tuple[Pin, ...]
    culprits: tuple[tuple[Pin, ...], ...]
    parts: tuple[tuple[Pin, ...], ...] = ()
    commits: tuple[Narrowed, ...] = ()
    tries: tuple[Try, ...] = ()

    @property
    def certain(self) -> bool:
        """Whether every culprit was told from the rest."""
        return all(len(block) == 1 for block in (*self.culprits, *self.parts))
