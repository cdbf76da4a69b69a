"""The records, open: what pages and verbs ask of them, and what runs put into them."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Table,
    Text,
    and_,
    cast,
    func,
    literal_column,
    or_,
    select,
)

from rocbase.files.atomic import sha256_bytes
from rocwright.records import plain, schema, write
from rocwright.records.database import Database
from rocwright.records.model import (
    Artifact,
    Cell,
    Finding,
    Met,
    NewestEvidence,
    Promotion,
    Run,
    Sample,
    StepAt,
    StepRun,
    StepTime,
    Which,
)

EVERYTHING = Which()


class Records:
    """The open records. It may be used by several threads at once, and is closed by its `with` block.

    Each method is one transaction, and raises what `Database` raises.
    """

    def __init__(self, database: Database) -> None:
        self.database = database

    def __enter__(self) -> Records:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.database.close()

    # runs

    def runs(self, which: Which = EVERYTHING, *, limit: int = 50, steps: bool = True) -> list[Run]:
        """The newest runs of that kind, newest first, with their steps where these are wanted.

        The next page: `which` with `before` the number of the last one.
        """
        runs = schema.runs
        query = select(runs).order_by(runs.c.number.desc())
        with self.database.reading() as connection:
            if which.step:
                query = query.where(runs.c.number.in_(_with_step(connection, which, limit)))
            else:
                query = query.where(*_conditions(which)).limit(limit)
            rows = connection.execute(query).mappings().all()
            by_run = _steps_of(connection, [row["number"] for row in rows]) if steps else {}
        return [_run(row, by_run.get(row["number"], ())) for row in rows]

    def count(self, which: Which = EVERYTHING) -> int:
        """How many runs of that kind there are."""
        with self.database.reading() as connection:
            query = select(func.count()).select_from(schema.runs).where(*_conditions(which))
            return int(connection.execute(query).scalar_one())

    def run(self, run_id: str) -> Run | None:
        """The run of that id, with its steps."""
        with self.database.reading() as connection:
            row = connection.execute(select(schema.runs).where(schema.runs.c.id == run_id)).mappings().first()
            return None if row is None else _run(row, _steps_of(connection, [row["number"]])[row["number"]])

    def lock(self, sha256: str) -> str | None:
        """The lock of that sha256 (`Run.lock`), as JSON: `Lock.model_validate_json` reads it.

        None where there is none, or what is kept under that name is damaged.
        """
        query = select(schema.locks.c.packed).where(schema.locks.c.sha256 == sha256)
        with self.database.reading() as connection:
            packed = connection.execute(query).scalar()
        try:
            text = b"" if packed is None else zlib.decompressobj().decompress(packed, schema.LARGEST_LOCK)
        except zlib.error:
            return None
        return text.decode() if text and sha256_bytes(text) == sha256 else None

    def samples(self, run_id: str) -> list[Sample]:
        """What its steps used over time, in the order of time."""
        query = (
            select(schema.samples)
            .join(schema.runs, schema.runs.c.number == schema.samples.c.run)
            .where(schema.runs.c.id == run_id)
            .order_by(schema.samples.c.at)
        )
        with self.database.reading() as connection:
            rows = connection.execute(query).mappings().all()
        return [Sample(**{name: row[name] for name in Sample.__dataclass_fields__}) for row in rows]

    # what is known of steps, artifacts, issues

    def steps(self, which: Which = EVERYTHING, *, component: str = "", limit: int = 200) -> list[StepAt]:
        """A step (`which.step`) or a component's main step (`component`) over time, the newest first."""
        steps, runs = schema.steps, schema.runs
        columns = ("stack", "base", "lock")
        conditions = _conditions(which, but_step=True)
        if which.step:
            conditions.append(_named(which.step))
        if component:
            conditions.append(and_(steps.c.component == component, steps.c.kind == "run"))
        # the order says where the database begins: with the few runs of a cell, else with the steps
        first = runs.c.number if which.stack or which.gpu or which.base else steps.c.run
        query = (
            select(*(runs.c[column] for column in (*columns, "id", "gpu")), runs.c.started.label("at"), steps)
            .join(runs, runs.c.number == steps.c.run)
            .where(*conditions)
            .order_by(first.desc(), steps.c.place.desc())
            .limit(limit)
        )
        with self.database.reading() as connection:
            rows = connection.execute(query).mappings().all()
        return [
            StepAt(
                run=row["id"],
                at=row["at"],
                gpu=tuple(row["gpu"]),
                step=_step(row),
                **{column: row[column] for column in columns},
            )
            for row in rows
        ]

    def times(self) -> list[StepTime]:
        """What each step of each stack took when it was last built, the newest first: once with a compiler
        cache that had little of it, and once with one that had most."""
        query = select(schema.step_times).order_by(schema.step_times.c.run.desc())
        with self.database.reading() as connection:
            rows = connection.execute(query).mappings().all()
        return [StepTime(**{name: row[name] for name in StepTime.__dataclass_fields__}) for row in rows]

    def built(self, step: str, key: str) -> list[tuple[str, str]]:
        """The runs that built that step under that key, the newest first: their ids, and the files of its
        log in their folders."""
        with self.database.reading() as connection:
            return plain.built(connection, step, key)

    def artifacts(
        self,
        which: Which = EVERYTHING,
        *,
        component: str = "",
        sha256: str = "",
        run: str = "",
        limit: int = 200,
    ) -> list[Artifact]:
        """What runs gave, the newest first: by component, by content or by run; sizes over time."""
        artifacts, runs = schema.artifacts, schema.runs
        conditions = _conditions(which)
        filters = ((artifacts.c.component, component), (artifacts.c.sha256, sha256), (runs.c.id, run))
        conditions += [column == value for column, value in filters if value]
        query = (
            select(artifacts, runs.c.id, runs.c.stack, runs.c.gpu, runs.c.base, runs.c.started)
            .join(runs, runs.c.number == artifacts.c.run)
            .where(*conditions)
            .order_by(artifacts.c.run.desc(), artifacts.c.component, artifacts.c.filename)
            .limit(limit)
        )
        with self.database.reading() as connection:
            rows = connection.execute(query).mappings().all()
        return [
            Artifact(
                **{name: row[name] for name in ("component", "step", "filename", "sha256", "size")},
                run=row["id"],
                stack=row["stack"],
                gpu=tuple(row["gpu"]),
                base=row["base"],
                at=row["started"],
            )
            for row in rows
        ]

    def findings(
        self, *, run: str = "", sha256: str = "", limit: int = 2000, standing: bool = False
    ) -> list[Finding]:
        """The findings of a run, or the evidence for an artifact by its sha256; the newest run first.

        Where they are to be `standing`, what a check found on a device holds until it runs there again; what
        it found where nothing ran, until it runs at all.
        """
        findings, runs = schema.findings, schema.runs
        filters = ((runs.c.id, run), (findings.c.sha256, sha256))
        query = (
            select(findings)
            .join(runs, runs.c.number == findings.c.run)
            .where(*(column == value for column, value in filters if value))
            .order_by(findings.c.run.desc(), findings.c.place)
            .limit(limit)
        )
        with self.database.reading() as connection:
            rows = connection.execute(query).mappings().all()
        if standing:
            rows = _standing(rows)
        return [Finding(**{name: row[name] for name in Finding.model_fields}) for row in rows]

    def met(self, limit: int = 200) -> list[Met]:
        """Known issues and classes of failure that runs met, the one met last first."""
        runs = schema.runs
        newest = func.max(runs.c.number).label("newest")
        groups = (
            select(runs.c.issue, runs.c.failure, func.count().label("met"), newest)
            .where(_rare("failure"))
            .group_by(runs.c.issue, runs.c.failure)
            .subquery()
        )
        query = (
            select(groups, runs.c.id, runs.c.started)
            .join(runs, runs.c.number == groups.c.newest)
            .order_by(groups.c.newest.desc())
            .limit(limit)
        )
        with self.database.reading() as connection:
            return [
                Met(issue=row.issue, failure=row.failure, runs=row.met, run=row.id, at=row.started)
                for row in connection.execute(query)
            ]

    # the matrix

    def matrix(
        self, *, stack: str = "", gpu: str = "", base: str = "", variant: str | None = None
    ) -> list[Cell]:
        """Every stack, GPU, variant and base that a run was about, in order; a promotion makes one too."""
        cells = schema.cells
        conditions = _given(cells, stack=stack, gpu=gpu, base=base, variant=variant)
        plain = [cells.c[name] for name in Cell._fields[:-2]]
        # parsed all at once: a matrix has thousands of them
        packed = [cast(cells.c[name], Text) for name in Cell._fields[-2:]]
        query = select(*plain, *packed).where(*conditions)
        query = query.order_by(cells.c.stack, cells.c.gpu, cells.c.variant, cells.c.base)
        with self.database.reading() as connection:
            rows = connection.execute(query).all()
        cell_values = json.loads(f"[{','.join(text for row in rows for text in row[-2:])}]")
        evidence = iter([{key: NewestEvidence(*entry) for key, entry in row.items()} for row in cell_values])
        return [Cell._make((*row[:-2], next(evidence), next(evidence))) for row in rows]

    def promotions(
        self,
        *,
        stack: str = "",
        gpu: str = "",
        base: str = "",
        variant: str | None = None,
        channel: str = "",
        limit: int = 100,
    ) -> list[Promotion]:
        """What channels held, the newest first: the first one of a cell and channel is what it holds."""
        promotions = schema.promotions
        conditions = _given(promotions, stack=stack, gpu=gpu, base=base, variant=variant, channel=channel)
        query = select(promotions).where(*conditions).order_by(promotions.c.number.desc())
        with self.database.reading() as connection:
            rows = connection.execute(query.limit(limit)).mappings().all()
        return [Promotion(**{name: row[name] for name in Promotion.model_fields}) for row in rows]

    def changed(self) -> tuple[int, int]:
        """Two counters: they grow with every change of the records, and with every change of the matrix."""
        with self.database.reading() as connection:
            row = connection.execute(select(schema.about.c.changed, schema.about.c.cells)).one()
        return row.changed, row.cells

    # what is put in

    def put(
        self,
        run: Run,
        steps: Mapping[int, StepRun] | None = None,
        findings: Iterable[Finding] = (),
        artifacts: Iterable[Artifact] = (),
        samples: Iterable[Sample] = (),
        lock: str = "",
    ) -> int:
        """Put a run as it is now, with the steps that changed by their place (nothing: all of the run's);
        gives its number. What a person at a shell does goes through `execution.runs.UnderWay`."""
        changed = dict(enumerate(run.steps)) if steps is None else steps
        parts = (list(findings), list(artifacts), list(samples), lock)
        return self.database.write(lambda connection: write.put(connection, run, changed, *parts))

    def promote(self, promotion: Promotion) -> None:
        """Make a run what a channel holds for its cell from now on."""
        self.database.write(lambda connection: write.promote(connection, promotion))


def _given(table: Table, variant: str | None, **names: str) -> list[ColumnElement[bool]]:
    """What is asked of columns: nothing of those that are ""; a variant may be that."""
    conditions = [table.c[name] == value for name, value in names.items() if value]
    return conditions if variant is None else [*conditions, table.c.variant == variant]


def _conditions(which: Which, *, but_step: bool = False) -> list[ColumnElement[bool]]:
    runs, steps, gpus = schema.runs, schema.steps, schema.run_gpus
    names = ("stack", "base", "command", "state", "outcome", "failure", "issue", "origin", "lock")
    equal = {name: getattr(which, name) for name in names if getattr(which, name)}
    conditions = [runs.c[name] == value for name, value in equal.items()]
    conditions += [_rare(name) for name, usual in schema.RARE.items() if equal.get(name, usual) != usual]
    if which.variant is not None:
        conditions.append(runs.c.variant == which.variant)
    if which.gpu:
        conditions.append(runs.c.number.in_(select(gpus.c.run).where(gpus.c.gpu == which.gpu)))
    if which.step and not but_step:
        conditions.append(runs.c.number.in_(select(steps.c.run).where(_named(which.step))))
    if which.since:
        conditions.append(runs.c.started >= which.since)
    if which.until:
        conditions.append(runs.c.started < which.until)
    if which.before:
        conditions.append(runs.c.number < which.before)
    return conditions


def _rare(name: str) -> ColumnElement[bool]:
    """That a column holds no usual word, as its index says it: without this the index is not used."""
    return schema.runs.c[name] != literal_column(f"'{schema.RARE[name]}'")


def _with_step(connection: Connection, which: Which, limit: int) -> Sequence[int]:
    """The numbers of the newest runs of that kind that have the step."""
    steps, runs = schema.steps, schema.runs
    exact = connection.execute(select(steps.c.run).where(steps.c.name == which.step).limit(1)).first()
    query = (
        select(steps.c.run)
        .distinct()
        .join(runs, runs.c.number == steps.c.run)
        .where(steps.c.name == which.step if exact else _named(which.step))
        .where(*_conditions(which, but_step=True))
        .order_by(steps.c.run.desc())
        .limit(limit)
    )
    return connection.execute(query).scalars().all()


def _named(step: str) -> ColumnElement[bool]:
    """A step of that name, or one whose name goes on after a slash: "0" is the sign after "/"."""
    name = schema.steps.c.name
    return or_(name == step, and_(name >= f"{step}/", name < f"{step}0"))


def _steps_of(connection: Connection, numbers: Sequence[int]) -> dict[int, tuple[StepRun, ...]]:
    steps = schema.steps
    query = select(steps).where(steps.c.run.in_(numbers)).order_by(steps.c.run, steps.c.place)
    by_number: defaultdict[int, list[StepRun]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        by_number[row["run"]].append(_step(row))
    return defaultdict(tuple, {number: tuple(run_steps) for number, run_steps in by_number.items()})


def _step(row: Mapping[Any, Any]) -> StepRun:
    figures = {name: value for name, value in row["figures"].items() if name in StepRun.model_fields}
    return StepRun(**{name: row[name] for name in StepRun.model_fields if name in row}, **figures)


def _run(row: Mapping[Any, Any], steps: Sequence[StepRun]) -> Run:
    return Run(**{name: row[name] for name in Run.model_fields if name != "steps"}, steps=tuple(steps))


def _standing(newest_first: Sequence[RowMapping]) -> list[RowMapping]:
    """The findings of each check's newest run, and of its newest on each device."""
    newest: dict[tuple[str, ...], int] = {}
    for row in newest_first:
        check = (row["component"], row["check"])
        newest.setdefault(check, row["run"])
        newest.setdefault((*check, row["device"]), row["run"])
    return [
        row
        for row in newest_first
        if row["run"] == newest[row["component"], row["check"]]
        or (row["device"] and row["run"] == newest[row["component"], row["check"], row["device"]])
    ]
