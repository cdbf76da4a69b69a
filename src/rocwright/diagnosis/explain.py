"""A failed step's error, with what is known of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rocbase.errors import ExplainedError, FailureClass
from rocwright.catalog.phase import Phase
from rocwright.diagnosis.read_log import MOST_LINES
from rocwright.model.steps import PREPARE, Step

if TYPE_CHECKING:
    from rocwright.catalog.issue import Issue
    from rocwright.diagnosis.diagnose import Diagnosis, FailurePlace, LogSearch


# Characters of output that are held before they are searched.
BYTES_HELD = 1024 * 1024

# What ended otherwise (for memory, by its limit, by the user) is told by the machine, not by a text.
_TOLD_BY_LOGS = frozenset(
    {
        FailureClass.CONFLICT,
        FailureClass.FETCH,
        FailureClass.PATCH,
        FailureClass.COMPILE,
        FailureClass.NETWORK,
        FailureClass.SANDBOX,
        FailureClass.CHECK,
    }
)

# What a step does, by the kind of its action; one that runs commands prepares or builds.
_PHASES = {"fetch": Phase.FETCH, "base": Phase.ROOT, "tree": Phase.PATCH, "image": Phase.IMAGE}


def for_step(advice: str, step: str) -> str:
    """Advice that names a step as `STEP`, with the name of the one that it is given for."""
    return re.sub(r"\bSTEP\b", lambda _: step, advice)


class Watch:
    """Takes a step's output in, line by line, for its diagnosis; at most some MiB are held.

    What searches is loaded when something is searched: most steps end well and say little.
    """

    def __init__(self, context: Callable[[], FailurePlace]) -> None:
        self._where = context
        self._held: list[str] = []
        self._size = 0
        self._search: LogSearch | None = None

    def line(self, text: str) -> None:
        """One more line. Little output is searched when the step failed, and not before."""
        self._held.append(text)
        self._size += len(text) + 1
        if self._size >= BYTES_HELD:
            self._read()

    def told(self) -> Diagnosis:
        """What broke."""
        return self._read().told()

    def _read(self) -> LogSearch:
        from rocwright.diagnosis.diagnose import LogSearch
        from rocwright.diagnosis.read_log import clean

        if self._search is None:
            self._search = LogSearch(self._where(), failed=True)
        if self._held:
            self._search.feed(clean("\n".join(self._held).encode(errors="replace")))
        self._held, self._size = [], 0
        return self._search


def excerpt(diagnosis: Diagnosis, last: Iterable[str]) -> str:
    """The lines to show: the first error's, with that of the known issue; else the `last` lines."""
    if diagnosis.first is None:
        return "\n".join(list(last)[-MOST_LINES:])
    lines = [*diagnosis.first.lines]
    if diagnosis.cause is not None and diagnosis.cause.place.text not in (line.strip() for line in lines):
        lines = [*lines[: MOST_LINES - 1], diagnosis.cause.place.text]
    return "\n".join(lines)


def add_known(error: ExplainedError, diagnosis: Diagnosis) -> None:
    """Tell the known issue that explains an error: what it means, its cause, its remedy."""
    if diagnosis.cause is not None:
        issue = diagnosis.cause.issue
        error.issue, error.known_issue, error.remedy = issue.name, issue.means, issue.remedy
        error.cause = " ".join([issue.cause, *(f"Here {note}." for note in diagnosis.cause.here)])


def issue_of(error: ExplainedError) -> Issue | None:
    """The known issue that explains an error, also where the machine ended something and no text tells it."""
    from rocwright.catalog.issue import the_issues

    issues = the_issues()[0]
    return issues.get(error.issue) or next(
        (issue for issue in issues.values() if issue.ended and issue.failure is error.failure), None
    )


def named_in(error: ExplainedError, issue: str) -> dict[str, str]:
    """What the lines that are kept of a failure name of a known issue that is a family."""
    return named_by(f"{error.detail}\n{error.cause}", issue)


def named_by(text: str, issue: str) -> dict[str, str]:
    """What the first line of a known issue names, in a text; nothing where no line is one."""
    from rocwright.diagnosis.diagnose import diagnose

    diagnosis = diagnose([f"{text}\n".encode(errors="replace")])
    return next((match.slots for match in diagnosis.known if match.issue.name == issue), {})


def first_line(error: ExplainedError) -> str:
    """What an error looks like, in a line: the first one that is worth seeing."""
    lines = [line.strip() for line in error.detail.splitlines() if line.strip()]
    return lines[0] if lines else error.message


def where_of(step: Step) -> FailurePlace:
    """What a step tells of the place where it fails."""
    from rocwright.diagnosis.diagnose import FailurePlace

    runs = Phase.PREPARE if step.name.startswith(PREPARE) else Phase.BUILD
    phase = _PHASES.get(step.kind, runs)
    details = step.about
    return FailurePlace(
        component=step.component,
        version=details.version,
        targets=details.targets,
        base=details.base,
        phase=phase,
    )


def explain(error: ExplainedError, context: FailurePlace) -> None:
    """Look into what an error tells of a program's output, where nothing is known of it yet."""
    issue = issue_of(error)
    if issue is not None and issue.ended:
        error.issue, error.known_issue, error.remedy = issue.name, issue.means, issue.remedy
    if error.failure not in _TOLD_BY_LOGS or error.issue or not (error.detail or error.cause):
        return
    watch = Watch(lambda: context)
    for line in f"{error.message}\n{error.detail}\n{error.cause}".splitlines():
        watch.line(line)
    add_known(error, watch.told())
