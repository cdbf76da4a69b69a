"""Runs that are kept as files: those of before there was a database, and those it could not be told of."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, select

from rocwheel.files.atomic import write_atomic
from rocwright.home import Home
from rocwright.records import schema, write
from rocwright.records.model import SUITE, Finding, Outcome, Run, said_of, with_failure
from rocwright.records.place import RUN, TAKEN
from rocwright.records.read import Records

BATCH = 200

_FINDINGS = TypeAdapter(tuple[Finding, ...])


def spool(home: Home, told: Outcome) -> None:
    """Keep a run as a file; the next who opens the records takes it over."""
    write_atomic(home.runs / told.run.id / RUN, told.model_dump_json(indent=1) + "\n")
    (home.runs / TAKEN).unlink(missing_ok=True)


def take_over(records: Records, home: Home) -> None:
    """Put all runs that are files on record, but those that are there. The files stay as they are."""
    if not home.runs.is_dir():
        return
    with records.database.reading() as connection:
        name = connection.execute(select(schema.about.c.name)).scalar_one()
    marker = home.runs / TAKEN
    if marker.exists() and marker.read_text() == name:
        return
    paths, evidence = sorted(home.runs.glob(f"*/{RUN}")), _evidence(home)
    for at in range(0, len(paths), BATCH):
        some = paths[at : at + BATCH]
        records.database.write(partial(_take, paths=some, evidence=evidence))
    write_atomic(marker, name)


def _take(connection: Connection, paths: Iterable[Path], evidence: Mapping[str, Sequence[Path]]) -> None:
    names = {path.parent.name: path for path in paths}
    ended = select(schema.runs.c.id).where(schema.runs.c.id.in_(names), schema.runs.c.state == "ended")
    known = set(connection.execute(ended).scalars())
    for told in _read([path for name, path in names.items() if name not in known]):
        findings = told.findings or tuple(_findings(evidence.get(told.run.id, ())))
        run = _completed(told.run, findings)
        write.put(connection, run, dict(enumerate(run.steps)), findings, told.artifacts, lock=told.lock)


def _read(paths: Iterable[Path]) -> Iterator[Outcome]:
    """What the files tell; one that a kill cut short is passed over."""
    for path in paths:
        try:
            data = json.loads(path.read_bytes())
            yield Outcome.model_validate(data) if "run" in data else Outcome(run=Run.model_validate(data))
        except (OSError, ValueError, TypeError):
            continue


def _completed(run: Run, findings: Iterable[Finding]) -> Run:
    """An old record knows neither what it is evidence of nor why it failed."""
    found = tuple(findings)
    devices = sorted({one.device for one in found if one.device})
    suite = any(one.name.startswith("verify/suite/") for one in run.steps)
    command = SUITE if suite else run.command
    about = {"command": command, "said": said_of(command, run.outcome, found), "device": ", ".join(devices)}
    return with_failure(run.model_copy(update=about) if not run.said else run)


def _evidence(home: Home) -> dict[str, list[Path]]:
    """The files of findings, by the run that left them."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sorted(home.old_evidence.glob("*/*.json")):
        found[path.stem].append(path)
    return found


def _findings(paths: Iterable[Path]) -> Iterator[Finding]:
    for path in paths:
        try:
            yield from _FINDINGS.validate_json(path.read_bytes())
        except (OSError, ValidationError):
            continue
