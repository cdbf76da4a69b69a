"""How far each row of the stacks has come, every word of it backed by evidence."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key
from typing import Annotated

from pydantic import Field

from rocbase.errors import ExplainedError
from rocbase.model import Frozen
from rocbase.toml.read import parse, read_table
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Stack, StackRow
from rocwright.home import Home
from rocwright.model.steps import Sha256
from rocwright.model.versions import is_older
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.shipped import request_of, rows, shipped_lock
from rocwright.records.model import Cell, Said
from rocwright.records.opening import read_records
from rocwright.records.place import there

EVIDENCE = "evidence.toml"

RunName = Annotated[str, Field(pattern=r"^(\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{6})?$")]
LockSum = Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")]


class Shown(Frozen):
    """What was shown, and on what device; `source` is the command or test that shows it again."""

    device: str = ""
    detail: str
    source: str
    sha256: dict[str, Sha256] = {}


class Evidence(Shown):
    """Name what was seen of a stack on a base for GPUs (no GPU: all of them), when and on what device.

    `run`, `lock` and `sha256` identify the run, its lock and its files by name.
    """

    stack: str
    base: str
    gpu: tuple[str, ...] = ()
    said: Said
    when: str
    run: RunName = ""
    lock: LockSum = ""


class EvidenceRow(Frozen):
    """State what was shown of a stack in one run, or on one day: on which bases, and of each for which GPUs.

    Several GPUs in one text are those of one build; without any the evidence is of all.
    """

    stack: str
    when: str
    run: RunName = ""
    lock: LockSum = ""
    bases: Annotated[dict[str, tuple[str, ...]], Field(min_length=1)]
    shows: Annotated[dict[Said, Shown], Field(min_length=1)]

    @property
    def entries(self) -> list[Evidence]:
        """The evidence for each base and build."""
        common = self.model_dump(exclude={"bases", "shows"})
        return [
            Evidence(base=base, gpu=tuple(gpus.split()), said=said, **common, **dict(shown))
            for base, builds in self.bases.items()
            for gpus in builds or ("",)
            for said, shown in self.shows.items()
        ]


class EvidenceFile(Frozen):
    """evidence.toml."""

    evidence: tuple[EvidenceRow, ...] = ()


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


def shipped_evidence(catalog: Catalog) -> list[Evidence]:
    """What was seen before this version was released."""
    files = [
        parse(EvidenceFile, read_table(path), path)
        for path in (folder / EVIDENCE for folder in catalog.folders)
        if path.exists()
    ]
    return [entry for file in files for row in file.evidence for entry in row.entries]


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
