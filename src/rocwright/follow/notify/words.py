"""What is told, in words that no receiver takes for commands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from rocbase.units import count, printable
from rocwright.config import KINDS, Kind
from rocwright.diagnosis.masking import masked
from rocwright.follow.notify.changes import OVERDUE, ident
from rocwright.follow.notify.model import Fact, StateChange

# Characters of a line, and lines about one change.
LONGEST, MOST_LINES = 400, 6

# Changes of one message that are told with all their lines, and those that are told at all.
IN_FULL, LINE_LIMIT = 3, 40

DOUBT = "This may have been told before: the last delivery was cut off."

# What makes a chat call everybody, in a text of a stranger.
_CALLS = re.compile(r"@(?=everyone|here|channel|room)|<(?=[!@#&])", re.IGNORECASE)


def plain(text: str, hidden: Iterable[str] = ()) -> str:
    """A line of somebody else's text: nothing in it is a secret, or a command to a terminal or a chat."""
    line = printable(masked(" ".join(text.split()), hidden))
    line = _CALLS.sub(lambda match: f"{match[0]}\N{ZERO WIDTH SPACE}", line)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def change_of(
    kind: Kind, fact: Fact, timestamp: str, extra: Iterable[str] = (), hidden: Iterable[str] = ()
) -> StateChange:
    """A change in words; `extra` are lines about it, beside what the fact has."""
    hidden = tuple(hidden)
    lines = [plain(line, hidden) for line in (*fact.detail, *extra) if line.strip()]
    return StateChange(
        id=ident(kind, fact, timestamp),
        kind=kind,
        subject=fact.subject,
        at=timestamp,
        headline=plain(_headline(kind, fact), hidden),
        channel=fact.channel,
        run=fact.run,
        detail=tuple(lines[:MOST_LINES]),
    )


def _headline(kind: Kind, fact: Fact) -> str:
    match kind:
        case "broken":
            return f"broken: {fact.subject}"
        case "mended":
            return f"passes again: {fact.subject}"
        case "promoted":
            return f"promoted to {fact.channel}: {fact.subject}"
        case "needs-person":
            return f"a person must decide: {fact.subject}"
        case "overdue":
            stands = "cycles are overdue" if fact.state.startswith(OVERDUE) else "cycles run again"
            return f"{stands}: {fact.subject}"


def title_of(changes: Sequence[StateChange]) -> str:
    """The subject of a message."""
    if len(changes) == 1:
        return f"rocwright: {changes[0].headline}"
    kinds = Counter(change.kind for change in changes)
    parts = [f"{kinds[kind]} {_PLURAL[kind]}" for kind in KINDS if kind in kinds]
    return f"rocwright: {', '.join(parts)}"


_PLURAL: dict[Kind, str] = {
    "broken": "broken",
    "mended": "passing again",
    "promoted": "promoted",
    "needs-person": "waiting for a person",
    "overdue": "about cycles",
}


def body_of(changes: Sequence[StateChange], machine: str, *, doubt: bool = False) -> str:
    """The text of a message: the few changes with their lines, many by their headlines alone."""
    lines = [DOUBT, ""] if doubt else []
    for change in changes[:LINE_LIMIT]:
        lines += [change.headline, *(f"  {line}" for line in change.detail if len(changes) <= IN_FULL)]
    if len(changes) > LINE_LIMIT:
        lines.append(f"and {count(len(changes) - LINE_LIMIT, 'more change')}: rocwright notify status --json")
    return "\n".join((*lines, "", f"seen on {machine}, {changes[-1].at}"))
