"""How everything stands now, as facts: of the matrix, of what upstream said, of cycles."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta

from rocbase.errors import FailureClass
from rocbase.units import duration
from rocwright.follow.bisection.model import MACHINE
from rocwright.follow.cycle.model import CycleTold, RowTold
from rocwright.follow.cycle.stands import ChannelPlace
from rocwright.follow.notify.changes import CHANNEL, CYCLES, OVERDUE, PERSON, ROW, UNIT, WATCH
from rocwright.follow.notify.model import BROKEN, FINE, PASSING, Fact
from rocwright.follow.watch.kept import LastLook
from rocwright.follow.watch.model import Alarm, Caution
from rocwright.plan.resolve.model import row_name
from rocwright.records.model import Cell

# Failures to find something out that may be gone by the next time: no person is asked for.
PASSES = FailureClass.NETWORK.value, FailureClass.INTERRUPTED.value

# Failures that say nothing of a row: they are the machine's, or upstream's.
_NO_ROW = {failure.value for failure in MACHINE | {FailureClass.FETCH}}


def of_cells(cells: Iterable[Cell], running: Collection[tuple[str, str, str, str]] = ()) -> Iterator[Fact]:
    """Each row, whether it asks for a person, and its channels; those that are `running` (stack, GPU, base,
    variant) are left out: how they stand is not known before the end."""
    for cell in cells:
        place = ChannelPlace(cell.stack, cell.gpu, cell.base, cell.variant)
        for channel, holds in cell.channels.items():
            yield Fact(
                f"{CHANNEL}{channel} {place.name}",
                f"{holds.run} {holds.at}",
                holds.at,
                place.name,
                channel,
                holds.run,
                (holds.detail,) if holds.detail else (),
            )
        if tuple(place) in running:
            continue
        state, person = _row(cell)
        yield Fact(f"{ROW}{place.name}", state, cell.run, place.name, run=cell.run)
        if person is not None:
            reason = (f"its newest run failed: {person}",) if person else ()
            yield Fact(f"{PERSON}{place.name}", person, cell.run, place.name, run=cell.run, detail=reason)


def _row(cell: Cell) -> tuple[str, str | None]:
    """How a row stands, FINE where its newest run does not say; and the failure that asks for a person, None
    where nobody can say whether one does."""
    if cell.outcome in ("built", "verified"):
        return f"{PASSING} {cell.command}", FINE
    if cell.outcome != "failed" or cell.failure in PASSES:
        return FINE, None
    return (FINE, cell.failure) if cell.failure in _NO_ROW else (f"{BROKEN} {cell.command}", FINE)


def of_watch(looks: Iterable[LastLook]) -> Iterator[Fact]:
    """What upstream did to what locks pin: each is something that a person must look at."""
    for look in looks:
        report = look.report
        several: tuple[Alarm | Caution, ...] = (*report.alarms, *report.cautions)
        for notice in several:
            key = f"{WATCH}{look.lock} {notice.name} {notice.what}"
            yield Fact(key, notice.what, look.at, _row_of(look.lock), detail=_notice_lines(notice))


def _row_of(label: str) -> str:
    """The row of a lock by the lock's label; the label, where it is of no row."""
    stack, gpus, base, variant = (*label.split(" \u00b7 "), "", "", "")[:4]
    return row_name(stack, gpus.split(", "), base, variant) if base else label


def _notice_lines(notice: Alarm | Caution) -> tuple[str, ...]:
    if isinstance(notice, Alarm):
        return (f"{notice.name}: {notice.what}", f"the lock has {notice.had}, upstream has {notice.now}")
    return (f"{notice.name}: {notice.what}{f' ({notice.why})' if notice.why else ''}",)


def of_rows_not_tried(cycle: CycleTold, alarms: Collection[str]) -> Iterator[Fact]:
    """Rows of a cycle of which nobody can tell before a person has done something; what is one of the
    `alarms` is told as such."""
    for row in cycle.rows:
        asks = row.state == "not tried" and row.failure and row.failure not in PASSES
        asks = asks and not any(alarm in row.why for alarm in alarms)
        state = _signature(row) if asks else FINE
        detail = ("the cycle could not try it", *row.why.splitlines()) if asks else ()
        yield Fact(f"{PERSON}in a cycle {cycle.folder} {row.name}", state, cycle.id, row.name, detail=detail)


def _signature(row: RowTold) -> str:
    """What two failures of one kind share: numbers and folders may differ."""
    return f"{row.failure}: {re.sub(r'[^ ]*/|[0-9]+', '', row.why.partition(chr(10))[0])[:200]}"


def of_cycle(
    folder: str, ended: str, began: str, hours: float, moment: datetime, observed: str = ""
) -> Fact | None:
    """Whether cycles of a folder stand still: none ended for more than `hours`, since the last one `ended`,
    or, where none ever did, since it `began` to be expected.

    Who expects none (0 hours) can only say of what was `observed` overdue that one has ended since;
    else None.
    """
    late = overdue(ended or began, hours, moment)
    if not hours and observed.partition(" ")[2] == (ended or began):
        return None
    if late is None:
        return Fact(f"{CYCLES}{folder}", FINE, ended, folder)
    last = f"the last one ended at {ended}" if ended else f"none has ended since {began}"
    detail = (f"{last}: {duration(late.total_seconds())} ago; {hours:g} h are allowed",)
    return Fact(f"{CYCLES}{folder}", f"{OVERDUE} {ended or began}", ended or began, folder, detail=detail)


def overdue(since: str, hours: float, moment: datetime) -> timedelta | None:
    """How long ago the last cycle ended, where that is more than `hours`; None where it is not, or where
    nobody expects cycles (0 hours)."""
    age = moment - datetime.fromisoformat(since)
    return age if hours and age > timedelta(hours=hours) else None


def of_unit(cycle: CycleTold, observed: str) -> Iterator[Fact]:
    """That a unit which was `observed` to fail ("failed TIME") runs again: a whole cycle ended after that."""
    if observed and cycle.ended > observed.partition(" ")[2]:
        yield Fact(f"{UNIT}{cycle.folder}", FINE, cycle.id, cycle.folder)
