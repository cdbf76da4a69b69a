"""What a wheel wants beside it, and which parts of the bill answer that: torch is what pytorch makes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from packaging.requirements import InvalidRequirement

from rocwheel.wheels.names import read_requirement
from rocwright.catalog.load import Catalog
from rocwright.plan.resolve.model import Lock
from rocwright.provenance.bundled import Contents
from rocwright.provenance.materials import Material


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """A requirement as the wheel says it; the version is told where the lock decides it, and `answers` are
    the files of the lock that the wanted package comes from."""

    text: str
    name: str
    version: str
    always: bool
    answers: tuple[Material, ...]


def wants(contents: Contents, lock: Lock, catalog: Catalog, materials: Sequence[Material]) -> Iterator[Want]:
    """Each requirement of a wheel's metadata, once."""
    requirements = contents.metadata.all("Requires-Dist") if contents.metadata else ()
    for text in dict.fromkeys(requirements):
        try:
            requirement = read_requirement(text)
        except InvalidRequirement:
            continue
        component = _component_of(requirement.name, lock, catalog)
        yield Want(
            text=text,
            name=requirement.name,
            version=_versions(lock).get(component, ""),
            always=requirement.marker is None,
            answers=tuple(_answers(component, lock, catalog, materials)),
        )


def _versions(lock: Lock) -> Mapping[str, str]:
    return lock.provided | {component.name: component.version for component in lock.components}


def _component_of(project: str, lock: Lock, catalog: Catalog) -> str:
    """The component that makes the wheel of a project; a project that none makes is called as it is."""
    wheel = f"{re.sub(r'[-_.]+', '_', project).lower()}-0-py3-none-any.whl"
    for name in _versions(lock):
        recipe = catalog.components.get(name)
        if recipe and any(fnmatchcase(wheel, output.pattern.lower()) for output in recipe.output):
            return name
    return project


def _answers(
    component: str, lock: Lock, catalog: Catalog, materials: Sequence[Material]
) -> Iterator[Material]:
    """The source of a component, or the package of the base that brings it along."""
    base, release = catalog.base(lock.request.base)
    brought = base.provided(release).get(component) if component in lock.provided else None
    for material in materials:
        if material.role == "source":
            matches = material.name == component
        else:
            matches = material.root is not None and brought is not None and material.name == brought.package
        if matches:
            yield material
