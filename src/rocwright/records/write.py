"""What is put on record, each in one transaction with all that follows from it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from sqlalchemy import Connection, Table, and_, insert, select, update

from rocwright.records import schema
from rocwright.records.model import BISECT, Artifact, Finding, Promotion, Run, Sample, Seen, StepRun, now

_OF_RUN = tuple(name for name in schema.runs.c.keys() if name != "number")  # noqa: SIM118 - no dict
_OF_STEP = tuple(name for name in schema.steps.c.keys() if name in StepRun.model_fields)  # noqa: SIM118
_FIGURES = tuple(name for name in StepRun.model_fields if name not in _OF_STEP)
"""What nobody looks for: it is kept together, and a new one needs no new version of the schema."""


WARM = 0.5
"""A step of which the compiler cache had more than this part says little of how long it takes."""


def put(
    connection: Connection,
    run: Run,
    steps: Mapping[int, StepRun],
    findings: Iterable[Finding] = (),
    artifacts: Iterable[Artifact] = (),
    samples: Iterable[Sample] = (),
    lock: str = "",
) -> int:
    """Put a run as it is now, and those of its steps that changed, by their place; gives its number.

    `lock` is the text whose sha256 the run names. The same may be put again, in place of what is there.
    """
    values = {name: getattr(run, name) for name in _OF_RUN} | {"gpu": list(run.gpu)}
    number: int = upsert(connection, schema.runs, ("id",), [values], returning=True)
    upsert(connection, schema.run_gpus, ("gpu", "run"), [{"gpu": one, "run": number} for one in run.gpu])
    rows = [_step_row(number, place, step) for place, step in steps.items()]
    upsert(connection, schema.steps, ("run", "place"), rows)
    upsert(
        connection,
        schema.findings,
        ("run", "place"),
        [{"run": number, "place": at} | one.model_dump() for at, one in enumerate(findings)],
    )
    made = ("component", "filename", "step", "sha256", "size")
    kept = {(one.component, one.filename): one for one in artifacts}.values()
    upsert(
        connection,
        schema.artifacts,
        ("run", "component", "filename"),
        [{"run": number} | {name: getattr(one, name) for name in made} for one in kept],
    )
    upsert(
        connection,
        schema.samples,
        ("run", "step", "at"),
        [
            {"run": number, "step": s.step, "at": s.at, "memory": s.memory, "processes": s.processes}
            for s in samples
        ],
    )
    if lock:
        packed = zlib.compress(lock.encode())
        upsert(connection, schema.locks, ("sha256",), [{"sha256": run.lock, "packed": packed}], keep=True)
    _note_times(connection, run, number, steps.values())
    asked = run.command in ("build", "verify") and run.origin.partition(" ")[0] != BISECT
    concerns_cells = run.state == "ended" and asked
    for gpu in run.gpu if concerns_cells else ():
        _note_cell(connection, run, number, gpu)
    changed(connection, cells=concerns_cells)
    return number


def state(connection: Connection, run_id: str) -> str:
    """How a run stands, which nobody else changes before the end of the transaction; "" where it is not."""
    query = select(schema.runs.c.state).where(schema.runs.c.id == run_id).with_for_update()
    return str(connection.execute(query).scalar() or "")


def _step_row(number: int, place: int, step: StepRun) -> dict[str, Any]:
    figures = {name: getattr(step, name) for name in _FIGURES if getattr(step, name)}
    return {name: getattr(step, name) for name in _OF_STEP} | {
        "run": number,
        "place": place,
        "needs": list(step.needs),
        "figures": figures,
    }


def _note_times(connection: Connection, run: Run, number: int, steps: Iterable[StepRun]) -> None:
    built = {one.name: one for one in steps if one.outcome == "built"}
    times = schema.step_times
    rows = [
        {"stack": run.stack, "name": one.name, "warm": one.cached > WARM, "run": number}
        | {name: getattr(one, name) for name in ("seconds", "peak_memory", "jobs", "cached", "counted")}
        for one in built.values()
    ]
    upsert(connection, times, ("stack", "name", "warm"), rows, newest="run")


def _note_cell(connection: Connection, run: Run, number: int, gpu: str) -> None:
    """The newest run decides, by its number: one that began earlier and ended later changes nothing, and one
    that was stopped takes nothing back of what was found before."""
    cells = schema.cells
    place = (run.stack, gpu, run.base, run.variant)
    cell = _locked_cell(connection, *place)
    values: dict[str, Any] = {}
    if number >= cell["number"] and (run.outcome != "stopped" or not cell["run"]):
        values = {"number": number, "run": run.id, "command": run.command, "outcome": run.outcome}
        values |= {"at": run.started, "failure": run.failure, "issue": run.issue}
    before = cell["seen"].get(run.said)
    if run.said and (before is None or number >= Seen(*before).number):
        outcome, words = {"build": ("built", "steps were run"), "verify": ("ok", "checks")}[run.command]
        count = sum(one.outcome == outcome for one in run.steps)
        seen = Seen(run.id, run.started, run.device, f"{count} {words}", number)
        values["seen"] = cell["seen"] | {run.said: seen}
    if run.said == "built" and not run.cached:
        values["whole_seconds"] = run.seconds
    if values:
        connection.execute(update(cells).where(_is(cells, *place)).values(values))


def promote(connection: Connection, one: Promotion) -> None:
    """Make a run what a channel holds from now on; what it held before stays on record."""
    when = one.model_copy(update={"at": one.at or now()})
    number = connection.execute(
        insert(schema.promotions).values(when.model_dump()).returning(schema.promotions.c.number)
    ).scalar_one()
    place = (one.stack, one.gpu, one.base, one.variant)
    cell = _locked_cell(connection, *place)
    holds = Seen(one.run, when.at, "", one.why, number)
    connection.execute(
        update(schema.cells)
        .where(_is(schema.cells, *place))
        .values(channels=cell["channels"] | {one.channel: holds})
    )
    changed(connection, cells=True)


def _locked_cell(connection: Connection, stack: str, gpu: str, base: str, variant: str) -> dict[str, Any]:
    """The cell, which nobody else changes before the end of the transaction."""
    cells = schema.cells
    place = {"stack": stack, "gpu": gpu, "base": base, "variant": variant}
    empty = place | {"number": 0, "seen": {}, "channels": {}}
    words = dict.fromkeys(("run", "command", "outcome", "at", "failure", "issue"), "")
    upsert(connection, cells, tuple(place), [empty | words], keep=True)
    found = connection.execute(select(cells).where(_is(cells, **place)).with_for_update())
    return dict(found.mappings().one())


def _is(cells: Table, stack: str, gpu: str, base: str, variant: str) -> Any:
    given = (cells.c.stack == stack, cells.c.gpu == gpu, cells.c.base == base, cells.c.variant == variant)
    return and_(*given)


def changed(connection: Connection, *, cells: bool) -> None:
    """Count the change, for whoever waits for one."""
    about = schema.about
    connection.execute(
        update(about).values(changed=about.c.changed + 1, cells=about.c.cells + (1 if cells else 0))
    )


def upsert(
    connection: Connection,
    table: Table,
    keys: tuple[str, ...],
    rows: list[dict[str, Any]],
    *,
    newest: str = "",
    keep: bool = False,
    returning: bool = False,
) -> Any:
    """Insert, or replace what has the same keys.

    `newest` names the column that must not go down, `keep` leaves what is there; `returning` gives the
    first column of the row.
    """
    if not rows:
        return None
    # only the dialect at hand is loaded: the other takes as long as all the rest of a short command
    made = import_module(f"sqlalchemy.dialects.{connection.dialect.name}").insert(table)
    if keep:
        statement = made.on_conflict_do_nothing(index_elements=keys)
    else:
        others = {name: made.excluded[name] for name in rows[0] if name not in keys}
        where = table.c[newest] <= made.excluded[newest] if newest else None
        # a row that is all key is set to itself: it must be there, and nothing changes
        others = others or {keys[0]: made.excluded[keys[0]]}
        statement = made.on_conflict_do_update(index_elements=keys, set_=others, where=where)
    if returning:
        first = next(iter(table.c))
        return connection.execute(statement.returning(first), rows[0]).scalar_one()
    connection.execute(statement, rows)
    return None
