"""What a build did: the steps that ran, what came of them, and what failed."""

from __future__ import annotations

from dataclasses import dataclass

from rocwheel.errors import RocwrightError
from rocwright.provenance.layout import Artifact
from rocwright.records.model import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build did."""

    run: Run
    artifacts: tuple[Artifact, ...]
    failures: tuple[tuple[str, RocwrightError], ...]
