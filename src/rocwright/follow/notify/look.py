"""One look: what changed is noted first, then told, then noted as told."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from rocbase.errors import ExplainedError
from rocbase.model import Frozen
from rocwright.config import Config, Cycles, Destination, Kind
from rocwright.diagnosis.masking import secrets_of_environment
from rocwright.follow.cycle.model import CycleTold
from rocwright.follow.cycle.run import last_cycles
from rocwright.follow.notify import facts, ledger
from rocwright.follow.notify.changes import CYCLES, UNIT, handed_out, noted
from rocwright.follow.notify.deliver import NO_ANSWER, deliver, ping
from rocwright.follow.notify.model import DeliveryState, Fact, Ledger, StateChange
from rocwright.follow.notify.words import change_of
from rocwright.follow.watch.kept import kept
from rocwright.home import Home
from rocwright.records.model import Which, now
from rocwright.records.opening import read_records
from rocwright.records.read import Records

# Until what could not be delivered is tried again: twice as long each time.
FIRST_WAIT, LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=6)

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
        previous = ledger.read(home)
        current = _noted(home, settings, order, previous)
        if current != previous:
            ledger.write(home, current)
        if not order.note:
            _deliver_due(home, settings, current)


def add(home: Home, settings: Config, kind: Kind, fact: Fact) -> None:
    """Note one thing that somebody else saw, and tell of it; once, however often it is seen."""
    with ledger.alone(home):
        state, changes = ledger.read(home), list[StateChange]()
        # all else that stands was there before anybody was to be told
        state = state or _noted(home, settings, LookOrder(), None)
        if fact.key not in state.seen:
            changes = [change_of(kind, fact, now(), hidden=hidden(settings))]
            state = state.model_copy(update={"seen": state.seen | {fact.key: fact.state}})
        state = handed_out(state, changes, settings.notify)
        ledger.write(home, state)
        _deliver_due(home, settings, state)


def hidden(settings: Config) -> tuple[str, ...]:
    """What no text may hold: secrets of the environment, and the addresses of destinations."""
    secrets = [*secrets_of_environment()]
    for destination in (*settings.notify, *([settings.cycle.ping] if settings.cycle.ping else [])):
        with contextlib.suppress(ExplainedError):
            secrets.append(destination.read(""))
    return tuple(secrets)


def _noted(home: Home, settings: Config, order: LookOrder, previous: Ledger | None) -> Ledger:
    """The ledger with all that changed since it was last written, waiting for who wants to know."""
    state, timestamp = previous or Ledger(since=now()), now()
    cycles = last_cycles(home)
    observations = [*_of_upstream(home, cycles), *_of_cycles(settings.cycle, cycles, order, state)]
    changes: list[StateChange] = []
    with contextlib.ExitStack() as stack:
        records: Records | None = None
        # records that do not answer now do at a later look
        with contextlib.suppress(ExplainedError):
            records = stack.enter_context(read_records(home))
            observations += facts.of_cells(records.matrix(), _running(records))
        updated, changed = noted(state, observations, first=previous is None)
        secret = hidden(settings) if changed else ()
        for kind, fact in changed:
            changes.append(change_of(kind, fact, timestamp, _details(records, kind, fact), secret))
    if previous is None:
        updated = updated.model_copy(update={"pinged": {cycle.folder: cycle.id for cycle in cycles}})
    return handed_out(updated, changes, settings.notify)


def _of_upstream(home: Home, cycles: Iterable[CycleTold]) -> Iterator[Fact]:
    looks = kept(home)
    alarms = [alarm.what for last_look in looks for alarm in last_look.report.alarms]
    yield from facts.of_watch(looks)
    for cycle in cycles:
        yield from facts.of_rows_not_tried(cycle, alarms)


def _of_cycles(
    settings: Cycles, cycles: Iterable[CycleTold], order: LookOrder, state: Ledger
) -> Iterator[Fact]:
    moment, ended = datetime.now(UTC), {cycle.folder: cycle.ended for cycle in cycles}
    for folder in {*ended, *([order.folder] if order.folder else [])}:
        mine = folder == order.folder
        hours = settings.limit(order.every if mine else 0)
        began = order.since if mine and order.since else state.since
        observed = state.seen.get(f"{CYCLES}{folder}", "")
        fact = facts.of_cycle(folder, ended.get(folder, ""), began, hours, moment, observed)
        if fact is not None:
            yield fact
    for cycle in cycles:
        yield from facts.of_unit(cycle, state.seen.get(f"{UNIT}{cycle.folder}", ""))


def _running(records: Records) -> set[tuple[str, str, str, str]]:
    runs = records.runs(Which(state="running"), limit=MOST_RUNNING, steps=False)
    return {(run.stack, gpu, run.base, run.variant) for run in runs for gpu in run.gpu}


def _details(records: Records | None, kind: Kind, fact: Fact) -> Iterator[str]:
    """What is on record of a change: the first failure of a run, or what it shows."""
    run = None
    with contextlib.suppress(ExplainedError):
        run = records.run(fact.run) if records is not None and fact.run else None
    if run is None:
        return
    failed = next((step for step in run.steps if step.outcome == "failed"), None)
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


def _deliver_due(home: Home, settings: Config, state: Ledger) -> None:
    """Deliver what waits and may be tried now; all at once, each with its own limit in time."""
    due = [destination for destination in settings.notify if _is_due(state.told[destination.called])]
    cycles = {cycle.folder: cycle for cycle in last_cycles(home)}
    good = _to_ping(settings.cycle, state, cycles) if settings.cycle.ping and _may_try(state.ping) else {}
    if not due and not good:
        return
    sending = {
        destination.called: state.told[destination.called].model_copy(update={"sending": True})
        for destination in due
    }
    ledger.write(home, state.model_copy(update={"told": state.told | sending}))
    with ThreadPoolExecutor(len(due) + 1) as pool:
        futures = {
            destination.called: pool.submit(_delivered, destination, state.told[destination.called])
            for destination in due
        }
        answer = pool.submit(ping, settings.cycle.ping) if good and settings.cycle.ping else None
        deliveries = {name: future.result() for name, future in futures.items()}
        update: dict[str, object] = {"told": state.told | deliveries}
        if answer is not None:
            reason = answer.result()
            update["ping"] = _failed(state.ping, reason) if reason else DeliveryState(last_at=now())
            update["pinged"] = state.pinged if reason else state.pinged | good
    ledger.write(home, state.model_copy(update=update))


def _is_due(delivery: DeliveryState) -> bool:
    return bool(delivery.waiting) and _may_try(delivery)


def _may_try(delivery: DeliveryState) -> bool:
    return not delivery.again or datetime.fromisoformat(delivery.again) <= datetime.now(UTC)


def _to_ping(settings: Cycles, state: Ledger, cycles: dict[str, CycleTold]) -> dict[str, str]:
    """The good cycles that were not reported yet; one that is too long ago tells nothing any more."""
    moment = datetime.now(UTC)
    return {
        folder: cycle.id
        for folder, cycle in cycles.items()
        if cycle.ok
        and state.pinged.get(folder) != cycle.id
        and facts.overdue(cycle.ended, settings.limit(), moment) is None
    }


def _delivered(destination: Destination, delivery: DeliveryState) -> DeliveryState:
    reason = deliver(destination, destination.called, delivery.waiting, doubt=delivery.sending)
    return _failed(delivery, reason) if reason else DeliveryState(last=delivery.waiting[-1], last_at=now())


def _failed(delivery: DeliveryState, reason: str) -> DeliveryState:
    wait = min(FIRST_WAIT * 2 ** min(delivery.tries, 20), LONGEST_WAIT)
    again = (datetime.now(UTC) + wait).strftime("%Y-%m-%dT%H:%M:%SZ")
    return delivery.model_copy(
        update={"sending": reason == NO_ANSWER, "tries": delivery.tries + 1, "error": reason, "again": again}
    )
