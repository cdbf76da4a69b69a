"""One look: what changed is noted first, then told, then noted as told."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from rocbase.errors import ExplainedError
from rocbase.model import Frozen
from rocwright.config import Config, Cycles, Destination, Kind
from rocwright.cycle.model import CycleTold
from rocwright.cycle.run import last_cycles
from rocwright.diagnosis.masking import secrets_of_environment
from rocwright.home import Home
from rocwright.notify import facts, ledger
from rocwright.notify.changes import CYCLES, UNIT, handed_out, noted
from rocwright.notify.deliver import NO_ANSWER, deliver, ping
from rocwright.notify.model import DeliveryState, Fact, Ledger, StateChange
from rocwright.notify.words import change_of
from rocwright.records.model import Which, now
from rocwright.records.opening import read_records
from rocwright.records.read import Records
from rocwright.watch.kept import kept

FIRST_WAIT, LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=6)
"""Until what could not be delivered is tried again: twice as long each time."""

MOST_RUNNING = 1000


class LookOrder(Frozen):
    """What a look is for. `note`: how everything stands is noted, and nobody is told: before a command begins
    to change it. `every`: a cycle of `folder` is expected every so many hours, since `since`."""

    note: bool = False
    folder: str = ""
    every: float = 0
    since: str = ""


def look(home: Home, settings: Config, order: LookOrder) -> None:
    """See what changed, and tell whoever wants to know. A delivery that fails waits for a later look.

    Raises InputError where another look takes too long, and OSError where the ledger cannot be kept.
    """
    with ledger.alone(home):
        before = ledger.read(home)
        seen = _noted(home, settings, order, before)
        if seen != before:
            ledger.write(home, seen)
        if not order.note:
            _told(home, settings, seen)


def add(home: Home, settings: Config, kind: Kind, fact: Fact) -> None:
    """Note one thing that somebody else saw, and tell of it; once, however often it is seen."""
    with ledger.alone(home):
        known, changes = ledger.read(home), list[StateChange]()
        # all else that stands was there before anybody was to be told
        known = known or _noted(home, settings, LookOrder(), None)
        if fact.key not in known.seen:
            changes = [change_of(kind, fact, now(), hidden=hidden(settings))]
            known = known.model_copy(update={"seen": known.seen | {fact.key: fact.state}})
        known = handed_out(known, changes, settings.notify)
        ledger.write(home, known)
        _told(home, settings, known)


def hidden(settings: Config) -> tuple[str, ...]:
    """What no text may hold: secrets of the environment, and the addresses of destinations."""
    found = [*secrets_of_environment()]
    for one in (*settings.notify, *([settings.cycle.ping] if settings.cycle.ping else [])):
        with contextlib.suppress(ExplainedError):
            found.append(one.read(""))
    return tuple(found)


def _noted(home: Home, settings: Config, order: LookOrder, before: Ledger | None) -> Ledger:
    """The ledger with all that changed since it was last written, waiting for who wants to know."""
    known, at = before or Ledger(since=now()), now()
    cycles = last_cycles(home)
    found = [*_of_upstream(home, cycles), *_of_cycles(settings.cycle, cycles, order, known)]
    changes: list[StateChange] = []
    with contextlib.ExitStack() as stack:
        records: Records | None = None
        # records that do not answer now do at a later look
        with contextlib.suppress(ExplainedError):
            records = stack.enter_context(read_records(home))
            found += facts.of_cells(records.matrix(), _running(records))
        seen, changed = noted(known, found, first=before is None)
        secret = hidden(settings) if changed else ()
        for kind, fact in changed:
            changes.append(change_of(kind, fact, at, _more(records, kind, fact), secret))
    if before is None:
        seen = seen.model_copy(update={"pinged": {one.folder: one.id for one in cycles}})
    return handed_out(seen, changes, settings.notify)


def _of_upstream(home: Home, cycles: Iterable[CycleTold]) -> Iterator[Fact]:
    looks = kept(home)
    alarms = [one.what for each in looks for one in each.report.alarms]
    yield from facts.of_watch(looks)
    for told in cycles:
        yield from facts.of_rows_not_tried(told, alarms)


def _of_cycles(
    settings: Cycles, cycles: Iterable[CycleTold], order: LookOrder, known: Ledger
) -> Iterator[Fact]:
    at, ended = datetime.now(UTC), {one.folder: one.ended for one in cycles}
    for folder in {*ended, *([order.folder] if order.folder else [])}:
        mine = folder == order.folder
        hours = settings.limit(order.every if mine else 0)
        began = order.since if mine and order.since else known.since
        seen = known.seen.get(f"{CYCLES}{folder}", "")
        fact = facts.of_cycle(folder, ended.get(folder, ""), began, hours, at, seen)
        if fact is not None:
            yield fact
    for told in cycles:
        yield from facts.of_unit(told, known.seen.get(f"{UNIT}{told.folder}", ""))


def _running(records: Records) -> set[tuple[str, str, str, str]]:
    runs = records.runs(Which(state="running"), limit=MOST_RUNNING, steps=False)
    return {(run.stack, gpu, run.base, run.variant) for run in runs for gpu in run.gpu}


def _more(records: Records | None, kind: Kind, fact: Fact) -> Iterator[str]:
    """What is on record of a change: the first failure of a run, or what it shows."""
    run = None
    with contextlib.suppress(ExplainedError):
        run = records.run(fact.run) if records is not None and fact.run else None
    if run is None:
        return
    failed = next((one for one in run.steps if one.outcome == "failed"), None)
    if failed is not None and kind in ("broken", "needs-person"):
        yield f"{run.command}, {failed.name}: {failed.error.get('message', 'failed')}"
        yield failed.error.get("cause", "")
        if failed.issue:
            yield f"known issue: {failed.issue}: {failed.error.get('known_issue', '')}"
    elif kind == "broken":
        yield f"{run.command} failed{f' ({run.failure})' if run.failure else ''}"
    elif kind == "promoted":
        yield ", ".join(f"{name} {version}" for name, version in run.versions.items())
    yield f"rocwright history {run.id}"


def _told(home: Home, settings: Config, known: Ledger) -> None:
    """Deliver what waits and may be tried now; all at once, each with its own limit in time."""
    due = [one for one in settings.notify if _is_due(known.told[one.called])]
    cycles = {one.folder: one for one in last_cycles(home)}
    good = _to_ping(settings.cycle, known, cycles) if settings.cycle.ping and _may_try(known.ping) else {}
    if not due and not good:
        return
    begun = {one.called: known.told[one.called].model_copy(update={"sending": True}) for one in due}
    ledger.write(home, known.model_copy(update={"told": known.told | begun}))
    with ThreadPoolExecutor(len(due) + 1) as pool:
        asked = {one.called: pool.submit(_delivered, one, known.told[one.called]) for one in due}
        answer = pool.submit(ping, settings.cycle.ping) if good and settings.cycle.ping else None
        told = {name: one.result() for name, one in asked.items()}
        update: dict[str, object] = {"told": known.told | told}
        if answer is not None:
            why = answer.result()
            update["ping"] = _failed(known.ping, why) if why else DeliveryState(last_at=now())
            update["pinged"] = known.pinged if why else known.pinged | good
    ledger.write(home, known.model_copy(update=update))


def _is_due(told: DeliveryState) -> bool:
    return bool(told.waiting) and _may_try(told)


def _may_try(told: DeliveryState) -> bool:
    return not told.again or datetime.fromisoformat(told.again) <= datetime.now(UTC)


def _to_ping(settings: Cycles, known: Ledger, cycles: dict[str, CycleTold]) -> dict[str, str]:
    """The good cycles that were not reported yet; one that is too long ago tells nothing any more."""
    at = datetime.now(UTC)
    return {
        folder: one.id
        for folder, one in cycles.items()
        if one.ok
        and known.pinged.get(folder) != one.id
        and facts.overdue(one.ended, settings.limit(), at) is None
    }


def _delivered(one: Destination, told: DeliveryState) -> DeliveryState:
    why = deliver(one, one.called, told.waiting, doubt=told.sending)
    return _failed(told, why) if why else DeliveryState(last=told.waiting[-1], last_at=now())


def _failed(told: DeliveryState, why: str) -> DeliveryState:
    wait = min(FIRST_WAIT * 2 ** min(told.tries, 20), LONGEST_WAIT)
    again = (datetime.now(UTC) + wait).strftime("%Y-%m-%dT%H:%M:%SZ")
    return told.model_copy(
        update={"sending": why == NO_ANSWER, "tries": told.tries + 1, "error": why, "again": again}
    )
