"""What changed between two looks. Nothing here touches a disk, a clock or a network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from rocbase.files.atomic import sha256_bytes
from rocwright.config import Destination, Kind
from rocwright.follow.notify.model import BROKEN, FINE, PASSING, DeliveryState, Fact, Ledger, StateChange

# How keys of facts begin, by what they are about.
ROW, PERSON, CHANNEL, CYCLES, WATCH, UNIT = "row ", "person ", "channel ", "cycles ", "watch ", "unit "

OVERDUE = "overdue"

# Changes that are kept for the feed.
MOST_CHANGES = 200

# Changes that wait for one destination; of more, the oldest go.
MOST_WAITING = 1000


def changed(previous: str | None, fact: Fact) -> Kind | None:
    """What kind of change it is that something which stood so (None: never seen) stands as `fact` says.

    What is first seen passing, or fine, changes nothing.
    """
    if (previous or FINE) == fact.state:
        return None
    match fact.key.partition(" ")[0]:
        case "row":
            was, is_ = _word(previous), _word(fact.state)
            if is_ == BROKEN:
                return None if was == BROKEN else "broken"
            return "mended" if was == BROKEN else None
        case "channel":
            return "promoted"
        case "cycles":
            return "overdue" if _word(previous) != _word(fact.state) else None
        case _:
            return "needs-person" if fact.state else None


def still(previous: str | None, fact: Fact) -> bool:
    """Whether what is new of a row says nothing of how it stood: a build alone does not mend what a check
    found, and what the machine is at fault for says nothing."""
    if not fact.key.startswith(ROW):
        return False
    return not fact.state or (previous == f"{BROKEN} verify" and fact.state == f"{PASSING} build")


def _word(state: str | None) -> str:
    return (state or "").partition(" ")[0]


def noted(
    ledger: Ledger, facts: Iterable[Fact], *, first: bool = False
) -> tuple[Ledger, tuple[tuple[Kind, Fact], ...]]:
    """The ledger as of these facts, and what changed; with `first` all but overdue cycles is taken as it is.

    What upstream no longer shows is forgotten; of all else that no fact is about, nothing is new.
    """
    facts = list(facts)
    states, changes = dict(ledger.seen), list[tuple[Kind, Fact]]()
    keys = {fact.key for fact in facts}
    for key in [key for key in states if key.startswith(WATCH) and key not in keys]:
        del states[key]
    for fact in facts:
        previous = states.get(fact.key)
        if still(previous, fact):
            continue
        kind = changed(previous, fact)
        # that cycles stand still is told whenever it is found out
        if kind is not None and (not first or kind == "overdue"):
            changes.append((kind, fact))
        if fact.state:
            states[fact.key] = fact.state
        else:
            states.pop(fact.key, None)
    return ledger.model_copy(update={"seen": states}), tuple(changes)


def ident(kind: Kind, fact: Fact, timestamp: str) -> str:
    """A name for a change that no other has, and that stays."""
    return sha256_bytes("\0".join((kind, fact.key, fact.state, fact.mark, timestamp)).encode())[:32]


def wants(destination: Destination, change: StateChange) -> bool:
    """Whether a destination asks for a change. Cycles are of no row: patterns of rows let them through."""
    if change.kind not in destination.on:
        return False
    if change.kind == "overdue":
        return True
    rows = any(fnmatchcase(change.subject, pattern) for pattern in destination.rows)
    channels = change.kind != "promoted" or any(
        fnmatchcase(change.channel, channel) for channel in destination.channels
    )
    return rows and channels


def handed_out(ledger: Ledger, changes: Sequence[StateChange], destinations: Iterable[Destination]) -> Ledger:
    """The ledger with these changes in the feed, and waiting for each who wants them; who is no longer in the
    settings is forgotten."""
    deliveries = {}
    for destination in destinations:
        delivery = ledger.told.get(destination.called, DeliveryState())
        mine = (*delivery.waiting, *(change for change in changes if wants(destination, change)))
        deliveries[destination.called] = delivery.model_copy(update={"waiting": mine[-MOST_WAITING:]})
    retained = (*ledger.changes, *changes)[-MOST_CHANGES:]
    return ledger.model_copy(update={"told": deliveries, "changes": retained})
