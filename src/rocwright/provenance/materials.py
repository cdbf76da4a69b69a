"""What an artifact was made from: every file that the steps behind it fetched, and every edit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from rocwright.model.edits import Edit
from rocwright.model.steps import BaseAction, FetchAction, FilePin, ImageAction, Plan, Step, TreeAction
from rocwright.plan.resolve.model import Lock, LockedComponent, LockedProvider, LockedPython, LockedRoot

T = TypeVar("T")

# What a file was for; a package that is both to build and to run is told as the latter.
Role = Literal["source", "download", "packages to build", "packages to run", "python", "rocm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A file that went in: `name` and `version` are of what it holds.

    `root` is the root that it is a package of, or that a source package is unpacked in; `component` the part
    of the lock that asked for it as a source.
    """

    pin: FilePin
    role: Role
    name: str
    version: str
    root: LockedRoot | None = None
    component: LockedComponent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildProvenance:
    """An artifact's step, the steps behind it (itself the last), what went in, and the edits by component."""

    step: Step
    steps: tuple[Step, ...]
    materials: tuple[Material, ...]
    edits: Mapping[str, tuple[Edit, ...]] = field(default_factory=dict)
    series: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def component(self) -> str:
        """The component whose artifact it is."""
        return self.step.component


def made_from(step: Step, plan: Plan, lock: Lock) -> BuildProvenance:
    """All that a step's output was made from, by the plan and the lock; each file once."""
    steps = behind(step, plan)
    fetched = {
        pin.sha256
        for needed in steps
        if isinstance(needed.action, FetchAction)
        for pin in needed.action.files
    }
    materials = (
        material
        for material in _materials(lock, _run_packages(step, steps))
        if material.pin.sha256 in fetched
    )
    return BuildProvenance(
        step=step,
        steps=steps,
        materials=tuple(_unique(materials)),
        edits=_by_component((component, tree.edits) for component, tree in _trees(steps)),
        series=_by_component((component, tree.series) for component, tree in _trees(steps)),
    )


def whole_provenance(lock: Lock, plan: Plan) -> BuildProvenance:
    """The same of all that a lock names, built or not."""
    last = plan.steps[-1]
    run = frozenset(pin.sha256 for root in lock.roots if root.role == "run" for pin in root.packages)
    return BuildProvenance(
        step=last,
        steps=plan.steps,
        materials=tuple(_unique(_materials(lock, run))),
        edits=_by_component((component, tree.edits) for component, tree in _trees(plan.steps)),
        series=_by_component((component, tree.series) for component, tree in _trees(plan.steps)),
    )


def behind(step: Step, plan: Plan) -> tuple[Step, ...]:
    """The steps that a step needs, and what these need, in the plan's order; itself the last."""
    by_key = {planned.key: planned for planned in plan.steps}
    waiting, visited = [step.key], set[str]()
    while waiting:
        key = waiting.pop()
        if key not in visited and key in by_key:
            visited.add(key)
            waiting += [item.key for item in by_key[key].inputs]
    return tuple(planned for planned in plan.steps if planned.key in visited)


def _run_packages(step: Step, steps: Iterable[Step]) -> frozenset[str]:
    """The packages that are in the artifact itself: those of the root that an image is packed from."""
    if not isinstance(step.action, ImageAction):
        return frozenset()
    by_key = {planned.key: planned for planned in steps}
    roots = [by_key[item.key] for item in step.inputs if isinstance(by_key[item.key].action, BaseAction)]
    fetches = [by_key[item.key].action for root in roots for item in root.inputs]
    return frozenset(pin.sha256 for fetch in fetches if isinstance(fetch, FetchAction) for pin in fetch.files)


def _materials(lock: Lock, run: frozenset[str]) -> Iterator[Material]:
    """Every file of a lock with its role, sources first; then those of the lock that it stands on."""
    first = next(iter(lock.roots), None)
    for component in lock.components:
        for pin in component.files:
            yield Material(
                pin=pin,
                role="source",
                name=component.name,
                version=component.version,
                root=first,
                component=component,
            )
        for pin in component.downloads:
            yield Material(pin=pin, role="download", name=pin.filename, version="", component=component)
    shared: tuple[tuple[Role, LockedProvider | LockedPython | None], ...] = (
        ("rocm", lock.rocm),
        ("python", lock.python),
    )
    for role, part in shared:
        if part is None:
            continue
        for sdist in part.sdists:
            for pin in (*sdist.files, *sdist.requires):
                yield _package(pin, role)
        for pin in part.files:
            yield _package(pin, role)
    for root in sorted(lock.roots, key=lambda root: root.role != "run"):
        for pin in root.packages:
            yield _package(pin, "packages to run" if pin.sha256 in run else "packages to build", root)
    if lock.on is not None:
        yield from _materials(lock.on, run)


def _package(pin: FilePin, role: Role, root: LockedRoot | None = None) -> Material:
    project, version = getattr(pin.origin, "project", ""), getattr(pin.origin, "version", "")
    name = project or getattr(pin.origin, "package", "") or pin.filename
    return Material(pin=pin, role=role, name=name, version=version, root=root)


def _unique(materials: Iterable[Material]) -> list[Material]:
    first: dict[str, Material] = {}
    for material in materials:
        first.setdefault(material.pin.sha256, material)
    return list(first.values())


def _trees(steps: Iterable[Step]) -> Iterator[tuple[str, TreeAction]]:
    return ((step.component, step.action) for step in steps if isinstance(step.action, TreeAction))


def _by_component(trees: Iterable[tuple[str, tuple[T, ...]]]) -> dict[str, tuple[T, ...]]:
    by_component: dict[str, tuple[T, ...]] = {}
    for component, values in trees:
        if values:
            by_component[component] = (*by_component.get(component, ()), *values)
    return by_component
