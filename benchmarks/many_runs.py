"""Records as a busy machine has them after years: cells by the thousand, runs by the hundred thousand."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import islice, product
from typing import Any

from sqlalchemy import Connection, insert, update

from rocwright.home import Home
from rocwright.records import schema
from rocwright.records.model import Finding, Seen, said_of
from rocwright.records.opening import open_records

STEPS = ("source/torch", "tree/torch", "root/build", "torch", "torchvision")
ISSUES = ("cmake-minimum", "template-depth", "missing-header", "")
BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
CARD = "AMD Radeon RX 580"
FOUND = {
    one: Finding(component="torch", check="smoke", name="adds", ok=True, device=one) for one in ("", CARD)
}
DAY = 8
"""Runs a cell has in a week, more or less."""


def fill(home: Home, *, cells: int, runs: int, seed: int = 1) -> None:
    """Put that many runs of that many cells into the records of an empty home; the same each time."""
    with open_records(home) as records:
        records.database.write(lambda connection: _fill(connection, cells, runs, random.Random(seed)))


def places(cells: int) -> list[tuple[str, str, str]]:
    """Stack, GPU and base of each cell."""
    side = range(1, round(cells ** (1 / 3)) + 9)
    bases = (f"debian:{number}" for number in range(8))
    every = product((f"stack-{at:02}" for at in side), (f"gfx{1000 + at}" for at in side), [*bases])
    return list(islice(every, cells))


def _fill(connection: Connection, cells: int, runs: int, dice: random.Random) -> None:
    known: dict[tuple[str, str, str], dict[str, Any]] = {}
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(places(cells), runs, dice, known):
        for table, found in row.items():
            rows.setdefault(table, []).extend(found)
        if len(rows["steps"]) > 20_000:
            _put(connection, rows)
    _put(connection, rows)
    connection.execute(insert(schema.cells), list(known.values()))
    connection.execute(update(schema.about).values(changed=runs, cells=runs))


def _put(connection: Connection, rows: dict[str, list[dict[str, Any]]]) -> None:
    """Put rows as SQLite takes them: there are hundreds of thousands."""
    for table in ("runs", "run_gpus", "steps", "artifacts", "findings"):
        if found := rows.get(table):
            names = ", ".join(f'"{name}"' for name in found[0])
            marks = ", ".join("?" * len(found[0]))
            values = [tuple(map(_plain, row.values())) for row in found]
            connection.exec_driver_sql(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)
    rows.clear()


def _plain(value: object) -> object:
    return json.dumps(value) if isinstance(value, list | dict) else value


def _rows(
    cells: list[tuple[str, str, str]],
    runs: int,
    dice: random.Random,
    known: dict[tuple[str, str, str], dict[str, Any]],
) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """The rows of each run, by table; `known` grows by what the cells then say."""
    for number in range(1, runs + 1):
        cell = cells[number % len(cells)] if number <= len(cells) else dice.choice(cells)
        stack, gpu, base = cell
        command = "verify" if number % 3 == 0 else "build"
        bad = dice.random() < 0.1
        outcome = "failed" if bad else {"verify": "verified", "build": "built"}[command]
        device = CARD if command == "verify" and dice.random() < 0.5 else ""
        said = said_of(command, outcome, [FOUND[device]])
        at = (BEGIN + timedelta(hours=number * 6 // DAY)).strftime("%Y-%m-%dT%H:%M:%SZ")
        failure, issue = ("compile", dice.choice(ISSUES)) if bad else ("", "")
        name = f"{at.translate({45: None, 58: None})}-{number:06x}"
        run = {
            "number": number,
            "id": name,
            "command": command,
            "stack": stack,
            "gpu": [gpu],
            "base": base,
            "state": "ended",
            "outcome": outcome,
            "started": at,
            "ended": at,
            "cached": 3,
            "seconds": dice.uniform(60, 9000),
            "origin": "cycle" if number % 2 else "",
            "lock": "",
            "versions": {"torch": "2.8.0"},
            "machine": "builder",
            "process": "1-1",
            "rocwright": "1.0",
            "said": said,
            "device": device,
            "failure": failure,
            "issue": issue,
        }
        digest = sha256(name.encode()).hexdigest()
        yield {
            "runs": [run],
            "run_gpus": [{"gpu": gpu, "run": number}],
            "steps": [_step(number, place, step, bad, issue, dice) for place, step in enumerate(STEPS)],
            "artifacts": [
                {
                    "run": number,
                    "component": "torch",
                    "filename": f"torch-2.8.0+{gpu}.whl",
                    "step": "torch",
                    "sha256": digest,
                    "size": dice.randrange(10**8, 10**9),
                }
            ]
            if outcome == "built"
            else [],
            "findings": [
                {
                    "run": number,
                    "place": 0,
                    "component": "torch",
                    "check": "smoke",
                    "name": "mm",
                    "ok": not bad,
                    "absent": False,
                    "detail": "",
                    "device": device,
                    "artifact": "torch.whl",
                    "sha256": digest,
                    "when": at,
                    "machine": "x86_64",
                    "engine": "podman",
                }
            ]
            if command == "verify"
            else [],
        }
        before = known.get(cell, {"seen": {}, "channels": {}, "whole_seconds": None})
        seen = Seen(name, at, device, "5 checks", number)
        known[cell] = before | {
            "stack": stack,
            "gpu": gpu,
            "base": base,
            "number": number,
            "run": name,
            "command": command,
            "outcome": outcome,
            "at": at,
            "failure": failure,
            "issue": issue,
            "seen": before["seen"] | ({said: seen} if said else {}),
            "channels": before["channels"] | ({"nightly": seen} if outcome == "verified" else {}),
        }


def _step(run: int, place: int, name: str, bad: bool, issue: str, dice: random.Random) -> dict[str, Any]:
    failed = bad and name == "torch"
    return {
        "run": run,
        "place": place,
        "name": name,
        "component": name.rpartition("/")[2],
        "kind": "run" if "/" not in name else "tree",
        "key": "k" * 64,
        "state": "ended",
        "outcome": "failed" if failed else "built",
        "started": "",
        "seconds": dice.uniform(1, 4000),
        "log": f"{name}.log".replace("/", "-"),
        "engine": "podman",
        "jobs": 8,
        "peak_memory": dice.randrange(10**9, 10**10),
        "compiler_cache": {"hit": dice.randrange(900), "miss": 100},
        "error": {"class": "compile", "what": "it broke", "issue": issue} if failed else {},
        "needs": [],
        "figures": {},
    }
