"""What was seen of stacks before this version was released, and which base has the most of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from rocbase.model import Frozen
from rocbase.toml.read import parse, read_table
from rocwright.catalog.load import Catalog
from rocwright.model.steps import Sha256
from rocwright.plan.resolve.model import Request
from rocwright.records.model import SAID, Said

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


def shipped_evidence(catalog: Catalog) -> list[Evidence]:
    """What was seen before this version was released."""
    files = [
        parse(EvidenceFile, read_table(path), path)
        for path in (folder / EVIDENCE for folder in catalog.folders)
        if path.exists()
    ]
    return [entry for file in files for row in file.evidence for entry in row.entries]


def evidence_rank(evidence: Sequence[Evidence], base: str, request: Request) -> int:
    """Return how much was seen of a request's stack on a base for its GPUs: the more, the higher."""
    ranks = [
        1 + SAID.index(entry.said)
        for entry in evidence
        if (entry.stack, entry.base) == (request.stack, base)
        and (not entry.gpu or {*request.gpu} <= {*entry.gpu})
    ]
    return max(ranks, default=0)
