"""What a build did: the steps that ran, what came of them, and what failed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rocwright.errors import RocwrightError
from rocwright.plan.model import Step
from rocwright.records.model import Run
from rocwright.store.model import Output


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A finished output of a plan: the step that made it, the output as the step made it, and where it was
    laid out.

    `sha256` and `size` (bytes) are of the file there: a wheel has its SBOM in it by then. `beside` are its
    SBOM and its statement; `keyid` is the key that signed that, "" where none did; `lacking` are the checks
    of its recipe that have not passed, for which it is not signed.
    """

    step: Step
    output: Output
    path: Path
    sha256: str
    size: int
    beside: tuple[Path, ...] = ()
    keyid: str = ""
    lacking: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build did."""

    run: Run
    artifacts: tuple[Artifact, ...]
    failures: tuple[tuple[str, RocwrightError], ...]
