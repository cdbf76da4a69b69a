"""How far each row of the stacks has come, every word of it backed by evidence."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args

from pydantic import ValidationError

from rocwright.build.runs import runs
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Row, Stack
from rocwright.catalog.read import parse, read_toml
from rocwright.errors import RocwrightError
from rocwright.home import Home
from rocwright.models import Frozen
from rocwright.plan.make import make_plan
from rocwright.resolve.model import Lock
from rocwright.resolve.shipped import request_of, rows, shipped_lock

EVIDENCE = "evidence.toml"

Said = Literal["checked against source", "built", "checked without a GPU", "ran in software", "ran on a GPU"]
SAID: tuple[Said, ...] = get_args(Said)
"""What evidence can say, each more than the one before it."""


class Evidence(Frozen):
    """One thing that was seen: of which stack, on which base, for which GPUs (all, where none is named), when
    and on what device, and where it can be seen again."""

    stack: str
    base: str
    gpu: tuple[str, ...] = ()
    said: Said
    when: str
    device: str = ""
    detail: str
    source: str


class Standing(Frozen):
    """A row of the table: what its lock leaves open, how many steps its plan has, and the evidence."""

    stack: str
    gpu: str
    base: str
    provider: str
    versions: dict[str, str]
    locks: bool
    pending: tuple[str, ...] = ()
    steps: int = 0
    problem: str = ""
    evidence: tuple[Evidence, ...] = ()
    wish: str
    holds: str


def standings(catalog: Catalog, home: Home | None = None) -> list[Standing]:
    """Every row of every stack; with `home`, what was built and verified on this machine counts too."""
    seen = [*shipped_evidence(catalog), *(local_evidence(home) if home else ())]
    return [_standing(catalog, stack, row, seen) for stack, row in rows(catalog)]


def _standing(catalog: Catalog, stack: Stack, row: Row, seen: Iterable[Evidence]) -> Standing:
    lock: Lock | None = None
    steps, problem = 0, ""
    try:
        lock = shipped_lock(catalog, request_of(stack, row))
        steps = len(make_plan(lock, catalog).steps) if lock else 0
    except RocwrightError as error:
        problem = f"{error.what}: {error.cause}"
    return Standing(
        stack=stack.name,
        gpu=row.gpu,
        base=row.base,
        provider=row.provider,
        versions=_versions(lock) if lock else {},
        locks=lock is not None,
        pending=lock.pending if lock else (),
        steps=steps,
        problem=problem,
        evidence=tuple(
            one
            for one in seen
            if one.stack == stack.name and one.base == row.base and (not one.gpu or row.gpu in one.gpu)
        ),
        wish=row.wish,
        holds=row.holds,
    )


def _versions(lock: Lock) -> dict[str, str]:
    rocm = {"rocm": lock.rocm.version} if lock.rocm else {}
    return rocm | lock.provided | {one.name: one.version for one in lock.components}


def shipped_evidence(catalog: Catalog) -> list[Evidence]:
    """What was seen before this version was released."""
    found: list[Evidence] = []
    for path in (folder / EVIDENCE for folder in catalog.folders):
        listed = read_toml(path).get("evidence", []) if path.exists() else []
        found += [parse(Evidence, one, path) for one in listed] if isinstance(listed, list) else []
    return found


def local_evidence(home: Home) -> list[Evidence]:
    """What was built on this machine, and verified on what device."""
    found = []
    for run in runs(home.runs):
        if run.command == "build" and run.outcome == "built":
            found.append(
                Evidence(
                    stack=run.stack,
                    base=run.base,
                    gpu=run.gpu,
                    said="built",
                    when=run.started,
                    detail=f"{sum(one.outcome == 'built' for one in run.steps)} steps were run",
                    source=f"{home.runs / run.id}",
                )
            )
        if run.command == "verify" and run.outcome == "verified":
            devices = _devices(home, run.id)
            said: Said = "checked without a GPU"
            if devices:
                said = "ran in software" if all(_software(one) for one in devices) else "ran on a GPU"
            found.append(
                Evidence(
                    stack=run.stack,
                    base=run.base,
                    gpu=run.gpu,
                    said=said,
                    when=run.started,
                    device=", ".join(devices),
                    detail=f"{len(run.steps)} checks",
                    source=f"{home.runs / run.id}",
                )
            )
    return found


def _devices(home: Home, run_id: str) -> list[str]:
    """The devices that the findings of a run name."""
    found: set[str] = set()
    for path in (home.path / "evidence").glob(f"*/{run_id}.json"):
        found |= _named(path)
    return sorted(found)


def _named(path: Path) -> set[str]:
    try:
        return {str(one["device"]) for one in json.loads(path.read_text()) if one.get("device")}
    except (OSError, ValueError, ValidationError, TypeError, AttributeError):
        return set()


def _software(device: str) -> bool:
    """Whether a device is a program: the CPU itself, or a driver that computes on it."""
    return device.lower().startswith(("cpu", "llvmpipe"))
