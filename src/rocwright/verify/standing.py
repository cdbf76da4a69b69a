"""How far each row of the stacks has come, every word of it backed by evidence."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key

from rocbase.errors import ExplainedError
from rocbase.model import Frozen
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Stack, StackRow
from rocwright.home import Home
from rocwright.model.versions import is_older
from rocwright.plan.resolve.evidence import Evidence, shipped_evidence
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.shipped import request_of, rows, shipped_lock
from rocwright.records.model import Cell
from rocwright.records.opening import read_records
from rocwright.records.place import there


class Standing(Frozen):
    """A row of the table: what its lock leaves open, how many steps its plan has, and the evidence.

    `newest` is the newest release that the catalog knows of the stack's first component, `newer` the number
    of releases after the row's own.
    """

    stack: str
    gpu: str
    base: str
    provider: str
    versions: dict[str, str]
    newest: str = ""
    newer: int = 0
    locks: bool
    pending: tuple[str, ...] = ()
    steps: int = 0
    problem: str = ""
    evidence: tuple[Evidence, ...] = ()
    wish: str
    holds: str


def standings(
    catalog: Catalog, home: Home | None = None, *, stack: str | None = None, plans: bool = True
) -> list[Standing]:
    """Every row of every stack, or of one; with `home`, what was built and verified on this machine counts
    too. Without `plans` nothing is planned, and locks are not read: the evidence alone is told."""
    evidence = [*shipped_evidence(catalog), *(local_evidence(home) if home else ())]
    selected = [(candidate, row) for candidate, row in rows(catalog) if stack in (None, candidate.name)]
    return [_standing(catalog, candidate, row, evidence, plans=plans) for candidate, row in selected]


def _standing(
    catalog: Catalog, stack: Stack, row: StackRow, evidence: Iterable[Evidence], *, plans: bool
) -> Standing:
    from rocwright.plan.make import make_plan

    lock: Lock | None = None
    steps, problem = 0, ""
    try:
        lock = shipped_lock(catalog, request_of(stack, row)) if plans else None
        steps = len(make_plan(lock, catalog).steps) if lock else 0
    except ExplainedError as error:
        problem = f"{error.message}: {error.cause}"
    versions = lock.versions if lock else {}
    first = stack.components[0]
    releases = newer_releases(catalog, first, {**row.versions, **versions}.get(first, ""))
    return Standing(
        stack=stack.name,
        gpu=row.gpu,
        base=row.base,
        provider=row.provider,
        versions=versions,
        newest=releases[-1] if releases else "",
        newer=len(releases),
        locks=lock is not None,
        pending=lock.pending if lock else (),
        steps=steps,
        problem=problem,
        evidence=tuple(
            entry
            for entry in evidence
            if entry.stack == stack.name
            and entry.base == row.base
            and (not entry.gpu or row.gpu in entry.gpu)
        ),
        wish=row.wish,
        holds=row.holds,
    )


def newer_releases(catalog: Catalog, component: str, version: str) -> list[str]:
    """Return the component's releases in the catalog that are newer than `version`, the newest last."""
    if not version:
        return []
    releases = [release.version for release in catalog.component(component).release]
    newer = [release for release in releases if is_older(version, release)]
    return sorted(newer, key=cmp_to_key(_compare_versions))


def _compare_versions(first: str, second: str) -> int:
    return -1 if is_older(first, second) else 1


def local_cells(home: Home) -> list[Cell]:
    """What is on record of each stack, GPU and base."""
    if not there(home):
        return []
    with read_records(home) as records:
        return records.matrix()


def local_evidence(home: Home, cells: Iterable[Cell] | None = None) -> list[Evidence]:
    """What was built on this machine, and verified on what device: the newest of each, for each cell."""
    return [
        Evidence(
            stack=cell.stack,
            base=cell.base,
            gpu=(cell.gpu,),
            said=outcome,
            when=sighting.at,
            device=sighting.device,
            detail=sighting.detail,
            source=f"{home.runs / sighting.run}",
        )
        for cell in (local_cells(home) if cells is None else cells)
        for outcome, sighting in cell.seen.items()
    ]
