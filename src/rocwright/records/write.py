"""What is put on record, each in one transaction with all that follows from it.

It is plain SQL that SQLite and PostgreSQL share: what a run says of itself is written without loading
SQLAlchemy, which takes longer than all else that a short build does beside its steps.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from rocbase.units import count
from rocwright.records.model import (
    BISECT,
    REHEARSAL,
    Artifact,
    Finding,
    NewestEvidence,
    Promotion,
    Run,
    Sample,
    StepRun,
    now,
)

OF_RUN = tuple(name for name in Run.model_fields if name not in ("number", "steps"))
# The columns of runs, and of steps (schema.py).
OF_STEP = (
    *("name", "component", "kind", "key", "state", "outcome", "started", "seconds", "log", "engine", "jobs"),
    *("peak_memory", "compiler_cache", "error", "needs"),
)

# What nobody looks for: it is kept together, and a new one needs no new version of the schema.
FIGURES = tuple(name for name in StepRun.model_fields if name not in OF_STEP)

# A step of which the compiler cache had more than this part says little of how long it takes.
WARM = 0.5


class Connection(Protocol):
    """A transaction: SQLAlchemy's, or one of its own for a file (plain.py)."""

    @property
    def dialect(self) -> Any:
        """What `name` is sqlite or postgresql of."""
        ...

    def exec_driver_sql(self, statement: str, parameters: Any = None, /) -> Any:
        """Run a statement, once for each mapping where there is a list of them; gives its rows."""
        ...


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
    values = {name: getattr(run, name) for name in OF_RUN} | {"gpu": list(run.gpu)}
    number: int = upsert(connection, "runs", ("id",), [values], returning="number")
    upsert(connection, "run_gpus", ("gpu", "run"), [{"gpu": gpu, "run": number} for gpu in run.gpu])
    rows = [_step_row(number, place, step) for place, step in steps.items()]
    upsert(connection, "steps", ("run", "place"), rows)
    upsert(
        connection,
        "findings",
        ("run", "place"),
        [{"run": number, "place": place} | finding.model_dump() for place, finding in enumerate(findings)],
    )
    columns = ("component", "filename", "step", "sha256", "size")
    unique = {(artifact.component, artifact.filename): artifact for artifact in artifacts}.values()
    upsert(
        connection,
        "artifacts",
        ("run", "component", "filename"),
        [{"run": number} | {name: getattr(artifact, name) for name in columns} for artifact in unique],
    )
    upsert(
        connection,
        "samples",
        ("run", "step", "at"),
        [
            {"run": number, "step": s.step, "at": s.at, "memory": s.memory, "processes": s.processes}
            for s in samples
        ],
    )
    if lock:
        packed = zlib.compress(lock.encode())
        upsert(connection, "locks", ("sha256",), [{"sha256": run.lock, "packed": packed}], keep=True)
    _note_times(connection, run, number, steps.values())
    is_evidence = run.command in ("build", "verify", "rehearse") and run.origin.partition(" ")[0] != BISECT
    concerns_cells = run.state == "ended" and is_evidence
    for gpu in run.gpu if concerns_cells else ():
        _note_cell(connection, run, number, gpu)
    changed(connection, cells=concerns_cells)
    return number


def state(connection: Connection, run_id: str) -> str:
    """How a run stands, which nobody else changes before the end of the transaction; "" where it is not."""
    row = _ask(connection, 'SELECT "state" FROM "runs" WHERE "id" = :id', {"id": run_id}, lock=True)
    return str(row[0]) if row else ""


def _step_row(number: int, place: int, step: StepRun) -> dict[str, Any]:
    figures = step.model_dump(mode="json", include={name for name in FIGURES if getattr(step, name)})
    return {name: getattr(step, name) for name in OF_STEP} | {
        "run": number,
        "place": place,
        "needs": list(step.needs),
        "figures": figures,
    }


def _note_times(connection: Connection, run: Run, number: int, steps: Iterable[StepRun]) -> None:
    # what a resumed step took says nothing of how long it takes
    built = {step.name: step for step in steps if step.outcome == "built" and not step.resumed}
    rows = [
        {"stack": run.stack, "name": step.name, "warm": step.cached > WARM, "run": number}
        | {name: getattr(step, name) for name in ("seconds", "peak_memory", "jobs", "cached", "counted")}
        for step in built.values()
    ]
    upsert(connection, "step_times", ("stack", "name", "warm"), rows, newest="run")


def _note_cell(connection: Connection, run: Run, number: int, gpu: str) -> None:
    """The newest run decides, by its number: one that began earlier and ended later changes nothing, and one
    that was stopped takes nothing back of what was found before."""
    place = (run.stack, gpu, run.base, run.variant)
    cell = _locked_cell(connection, *place)
    values: dict[str, Any] = {}
    # a rehearsal says nothing of how builds of the cell go
    passing = run.outcome == "stopped" or run.command == "rehearse"
    if number >= cell["number"] and (not passing or not cell["run"]):
        values = {"number": number, "run": run.id, "command": run.command, "outcome": run.outcome}
        values |= {"at": run.started, "failure": run.failure, "issue": run.issue}
    previous = cell["seen"].get(run.said)
    if run.said and (previous is None or number >= NewestEvidence(*previous).number):
        evidence = NewestEvidence(run.id, run.started, run.device, _detail(run), number)
        values["seen"] = cell["seen"] | {run.said: evidence}
    if run.said == "built" and not run.cached:
        values["whole_seconds"] = run.seconds
    if values:
        _change_cell(connection, values, *place)


def _detail(run: Run) -> str:
    """How much a run has done of what it says, in words."""
    match run.command:
        case "rehearse":
            rehearsed = [step for step in run.steps if step.kind == REHEARSAL]
            return (
                f"{sum(step.tried for step in rehearsed)} of {sum(step.counted for step in rehearsed)} tried"
            )
        case "build":
            ran = sum(step.outcome == "built" for step in run.steps)
            return f"{count(ran, 'step')} {'was' if ran == 1 else 'were'} run"
        case _:
            return count(sum(step.outcome == "ok" for step in run.steps), "check")


def promote(connection: Connection, promotion: Promotion) -> None:
    """Make a run what a channel holds from now on; what it held before stays on record."""
    when = promotion.model_copy(update={"at": promotion.at or now()})
    number = _insert(connection, "promotions", [when.model_dump()], returning="number")
    place = (promotion.stack, promotion.gpu, promotion.base, promotion.variant)
    cell = _locked_cell(connection, *place)
    holds = NewestEvidence(promotion.run, when.at, "", promotion.why, number)
    _change_cell(connection, {"channels": cell["channels"] | {promotion.channel: holds}}, *place)
    changed(connection, cells=True)


_CELL = ("stack", "gpu", "base", "variant")
_OF_CELL = ("number", "run", "seen", "channels")
_IS_CELL = " AND ".join(f'"{name}" = :{name}' for name in _CELL)


def _locked_cell(connection: Connection, *place: str) -> dict[str, Any]:
    """The cell, which nobody else changes before the end of the transaction."""
    named = dict(zip(_CELL, place, strict=True))
    empty = named | {"number": 0, "seen": {}, "channels": {}}
    words = dict.fromkeys(("run", "command", "outcome", "at", "failure", "issue"), "")
    upsert(connection, "cells", _CELL, [empty | words], keep=True)
    columns = ", ".join(f'"{name}"' for name in _OF_CELL)
    sql = f'SELECT {columns} FROM "cells" WHERE {_IS_CELL}'  # noqa: S608 - names of ours
    row = _ask(connection, sql, named, lock=True)
    # a file gives JSON as text, a server as what it says
    values = (
        json.loads(value) if isinstance(value, str) and index > 1 else value
        for index, value in enumerate(row)
    )
    return dict(zip(_OF_CELL, values, strict=True))


def _change_cell(connection: Connection, values: Mapping[str, Any], *place: str) -> None:
    sets = ", ".join(f'"{name}" = :to_{name}' for name in values)
    parameters = {f"to_{name}": value for name, value in values.items()} | dict(
        zip(_CELL, place, strict=True)
    )
    run_plain(connection, f'UPDATE "cells" SET {sets} WHERE {_IS_CELL}', parameters)  # noqa: S608 - names of ours


def changed(connection: Connection, *, cells: bool) -> None:
    """Count the change, for whoever waits for one."""
    sql = 'UPDATE "about" SET "changed" = "changed" + 1, "cells" = "cells" + :more'
    run_plain(connection, sql, {"more": 1 if cells else 0})


def upsert(
    connection: Connection,
    table: str,
    keys: tuple[str, ...],
    rows: list[dict[str, Any]],
    *,
    newest: str = "",
    keep: bool = False,
    returning: str = "",
) -> Any:
    """Insert, or replace what has the same keys.

    `newest` names the column that must not go down, `keep` leaves what is there; `returning` names a column
    of the one row that is given back.
    """
    if not rows:
        return None
    # a row that is all key is set to itself: it must be there, and nothing changes
    updated = [name for name in rows[0] if name not in keys] or [keys[0]]
    sets = ", ".join(f'"{name}" = excluded."{name}"' for name in updated)
    condition = f' WHERE "{table}"."{newest}" <= excluded."{newest}"' if newest else ""
    conflict = ", ".join(f'"{name}"' for name in keys)
    does = "NOTHING" if keep else f"UPDATE SET {sets}{condition}"
    return _insert(connection, table, rows, f" ON CONFLICT ({conflict}) DO {does}", returning)


def _insert(
    connection: Connection, table: str, rows: list[dict[str, Any]], suffix: str = "", returning: str = ""
) -> Any:
    names = ", ".join(f'"{name}"' for name in rows[0])
    marks = ", ".join(f":{name}" for name in rows[0])
    sql = f'INSERT INTO "{table}" ({names}) VALUES ({marks}){suffix}'  # noqa: S608 - names of the schema
    if returning:
        return run_plain(connection, f'{sql} RETURNING "{returning}"', rows[0]).fetchone()[0]
    run_plain(connection, sql, rows)
    return None


def _ask(connection: Connection, sql: str, values: Mapping[str, Any], *, lock: bool) -> Sequence[Any]:
    """The first row; with `lock` it stays as it is until the end of the transaction. () where there is none.

    Whoever writes a file has it alone.
    """
    locked = lock and connection.dialect.name != "sqlite"
    row = run_plain(connection, f"{sql} FOR UPDATE" if locked else sql, values).fetchone()
    return tuple(row) if row is not None else ()


_MARK = re.compile(r":(\w+)")


def run_plain(connection: Connection, sql: str, values: Mapping[str, Any] | list[dict[str, Any]]) -> Any:
    """Run a statement whose values are named, `:name`; once for each row of a list."""
    if connection.dialect.name != "sqlite":
        sql = _MARK.sub(r"%(\1)s", sql)
    if isinstance(values, list):
        return connection.exec_driver_sql(sql, [_plain(row) for row in values])
    return connection.exec_driver_sql(sql, _plain(values))


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of what every database takes: lists and mappings are JSON."""
    encoded = {
        name: json.dumps(value) for name, value in row.items() if isinstance(value, dict | list | tuple)
    }
    return {**row, **encoded}
