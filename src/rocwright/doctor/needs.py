"""What building a stack takes, as the catalog says."""

from __future__ import annotations

from rocbase.model import Frozen
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Resources


class BuildNeed(Frozen):
    """Bytes of memory and disk, wall seconds on two cores; zero is unknown.

    `memory` is what the target is said to want, `memory_per_job` what the largest compiler takes.
    """

    stack: str
    memory: int = 0
    memory_per_job: int = 0
    disk: int = 0
    seconds: float = 0


def need_of(catalog: Catalog, stack: str) -> BuildNeed:
    """Of a stack's own components; what they need beside them is not in it."""
    resources = [catalog.component(name).resources for name in catalog.stack(stack).components]
    per_job = max((resource.memory_per_job for resource in resources), default=0)
    return BuildNeed(
        stack=stack,
        memory=per_job,
        memory_per_job=per_job,
        disk=sum(resource.disk for resource in resources) if all(map(_says_disk, resources)) else 0,
        seconds=sum(resource.seconds for resource in resources),
    )


def _says_disk(resources: Resources) -> bool:
    """Whether a recipe says it; what a model assumes in its place is no figure to tell."""
    return "disk" in resources.model_fields_set
