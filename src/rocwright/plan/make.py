"""Lock -> plan: one step for each thing to fetch, make or build, with its key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rocwright.catalog.load import Catalog, lookup
from rocwright.catalog.model import Component, Env, Image, filled
from rocwright.errors import InputError
from rocwright.patching.model import Edit
from rocwright.plan.environment import PACKAGES
from rocwright.plan.model import (
    BaseAction,
    BuiltinOrigin,
    DebianOrigin,
    DebianSourceOrigin,
    FetchAction,
    GitOrigin,
    ImageAction,
    ImageOrigin,
    IndexOrigin,
    Input,
    Needs,
    PackageOrigin,
    Plan,
    RunAction,
    Step,
    TreeAction,
)
from rocwright.resolve.fits import check_fits
from rocwright.resolve.model import Lock, LockedComponent, LockedRoot
from rocwright.resolve.versions import version_in

UNPACKED = 5
"""A root file system takes about this many times the size of its packages, archive and folder together."""


def make_plan(lock: Lock, catalog: Catalog) -> Plan:
    """The steps that turn a lock into artifacts, each after what it needs.

    Raises InputError where the lock does not fit the recipes.
    """
    check_fits(lock, catalog)
    steps: list[Step] = []
    roots: dict[str, Step] = {}
    for root in lock.roots:
        made = list(_root_steps(root, catalog))
        roots[root.role] = made[-1]
        steps += made
    base, _ = catalog.base(f"{_root(lock, 'build').base}:{_root(lock, 'build').suite}")
    artifacts: list[str] = []
    for locked in lock.components:
        component = catalog.component(locked.name)
        source, tree = _source_steps(component, locked, lock)
        built = _run_step(component, locked, lock, tree, roots["build"], base.compiler_reads)
        steps += [source, tree, built]
        artifacts.append(built.name)
        if component.image is not None:
            run = _root(lock, "run")
            image = _image_step(component.image, component, locked, lock, run, built, roots["run"])
            steps.append(image)
            artifacts.append(image.name)
    return Plan(steps=tuple(_unique(steps)), artifacts=tuple(artifacts))


def _root(lock: Lock, role: str) -> LockedRoot:
    root = lock.root(role)
    if root is None:
        raise InputError(
            f"the lock has no packages to {role}",
            cause="it was edited, or made for another recipe",
            next_step="rocwright lock",
        )
    return root


def _unique(steps: Iterable[Step]) -> list[Step]:
    return list({step.key: step for step in steps}.values())


def _root_steps(root: LockedRoot, catalog: Catalog) -> tuple[Step, Step]:
    size = sum(pin.size for pin in root.packages)
    packages = Step(
        name=f"packages/{root.role}",
        component=f"{root.base}:{root.suite}",
        action=FetchAction(files=root.packages),
        needs=Needs(disk=size, seconds=10),
    )
    made = Step(
        name=f"root/{root.role}",
        component=f"{root.base}:{root.suite}",
        action=_base_action(root, catalog),
        inputs=(Input(name="packages", key=packages.key, output="*"),),
        needs=Needs(memory=512 * 1024**2, disk=UNPACKED * size, seconds=60, limit=3600),
    )
    return packages, made


def _base_action(root: LockedRoot, catalog: Catalog) -> BaseAction:
    image = next((pin.sha256 for pin in root.packages if isinstance(pin.origin, ImageOrigin)), "")
    if not image:
        return BaseAction(suite=root.suite, architecture=root.architecture)
    manager = lookup("package manager", root.manager, catalog.managers)
    return BaseAction(
        family="image",
        suite=root.suite,
        architecture=root.architecture,
        image=image,
        install=filled(manager.install, folder=PACKAGES),
        env=manager.env,
        forget=manager.forget,
    )


def _source_steps(component: Component, locked: LockedComponent, lock: Lock) -> tuple[Step, Step]:
    targets = lock.request.gpu
    size = sum(pin.size for pin in locked.files)
    source = Step(
        name=f"source/{component.name}",
        component=component.name,
        action=FetchAction(files=locked.files),
        needs=Needs(disk=size, seconds=5),
    )
    tree = Step(
        name=f"tree/{component.name}",
        component=component.name,
        action=TreeAction(
            subdir=locked.subdir,
            series=locked.series,
            edits=edits_for(component.edit, locked.version, targets, place_of(locked), "", versions_of(lock)),
            version=locked.version,
        ),
        inputs=(Input(name="source", key=source.key, output="*"),),
        needs=Needs(disk=10 * size, seconds=5, limit=3600),
    )
    return source, tree


def versions_of(lock: Lock) -> dict[str, str]:
    """The version of every component of a lock, built or provided."""
    return lock.provided | {one.name: one.version for one in lock.components}


def edits_for(
    edits: Iterable[Edit],
    version: str,
    targets: tuple[str, ...],
    place: str,
    phase: str = "",
    beside: Mapping[str, str] | None = None,
) -> tuple[Edit, ...]:
    """The edits of a phase that hold for this version, these targets, this kind of source place and these
    versions of other components, with `{targets}` filled in."""
    others = beside or {}
    return tuple(
        edit.for_targets(targets)
        for edit in edits
        if edit.phase == phase
        and version_in(version, edit.versions)
        and (not edit.places or place in edit.places)
        and (not edit.targets or not set(targets).isdisjoint(edit.targets))
        and all(name in others and version_in(others[name], one) for name, one in edit.beside.items())
    )


def place_of(locked: LockedComponent) -> str:
    """The kind of place that a locked source is from, as a recipe's edit names it."""
    match locked.files[0].origin:
        case GitOrigin():
            return "git"
        case IndexOrigin():
            return "sdist"
        case DebianSourceOrigin() | DebianOrigin():
            return "debian"
        case BuiltinOrigin():
            return "builtin"
        case ImageOrigin():
            return "image"
        case PackageOrigin():
            return "package"


def _run_step(
    component: Component,
    locked: LockedComponent,
    lock: Lock,
    tree: Step,
    root: Step,
    compiler_reads: tuple[str, ...],
) -> Step:
    env = environment_of(component, locked, lock)
    resources = component.resources
    return Step(
        name=component.name,
        component=component.name,
        action=RunAction(
            commands=component.run,
            env=env,
            outputs=component.output,
            guard=component.guard,
            compiler_reads=compiler_reads,
        ),
        inputs=(
            Input(name="root", key=root.key, output="root"),
            Input(name="src", key=tree.key, output="tree"),
        ),
        needs=Needs(
            cores=64,
            memory=resources.memory_per_job,
            disk=resources.disk,
            seconds=resources.seconds,
            limit=resources.limit,
        ),
    )


def environment_of(component: Component, locked: LockedComponent, lock: Lock) -> dict[str, str]:
    """The recipe's variables for this lock: those whose condition holds, filled in."""
    known = {"version": locked.version, "targets": ";".join(lock.request.gpu), "commit": locked.commit}
    recipe = component.env | component.released(locked.version).env
    return {
        name: expand(value, known, f"{component.name}: {name}")
        for name, value in chosen_values(recipe, present(lock)).items()
    }


def present(lock: Lock) -> frozenset[str]:
    """The components that a lock has, whether built or provided."""
    rocm = {"rocm"} if lock.rocm else set()
    return frozenset({one.name for one in lock.components} | set(lock.provided) | rocm)


def chosen_values(env: Env, have: frozenset[str]) -> dict[str, str]:
    """The variables whose condition holds where the components `have` are there."""
    found: dict[str, str] = {}
    for name, one in env.items():
        if isinstance(one, str):
            found[name] = one
        elif not one.when or (one.when.removeprefix("!") in have) != one.when.startswith("!"):
            found[name] = one.value
    return found


def expand(text: str, values: dict[str, str], subject: str) -> str:
    """`{version}` and `{targets}` in a recipe's environment. Raises InputError for any other name."""
    try:
        return text.format_map(values)
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        raise InputError(
            f"{subject} = {text!r} cannot be filled in",
            cause=f"{error} is not one of {', '.join(values)}",
            next_step="correct the recipe",
        ) from error


def _image_step(
    image: Image,
    component: Component,
    locked: LockedComponent,
    lock: Lock,
    run: LockedRoot,
    built: Step,
    root: Step,
) -> Step:
    return Step(
        name=f"image/{component.name}",
        component=component.name,
        action=ImageAction(
            name=f"{component.name}-{lock.request.stack}",
            reference=f"rocwright/{lock.request.stack}:{locked.version}",
            prefix=image.prefix,
            entrypoint=image.entrypoint,
            env=image.env,
            architecture=run.architecture,
            labels={
                "org.opencontainers.image.title": f"{component.name} ({lock.request.stack})",
                "org.opencontainers.image.description": component.summary,
                "org.opencontainers.image.version": locked.version,
                "org.opencontainers.image.licenses": component.license,
                "org.opencontainers.image.source": component.homepage,
                "org.opencontainers.image.base.name": f"{run.base}:{run.suite}",
                "rocwright.source.place": locked.place,
                "rocwright.source.sha256": ",".join(pin.sha256 for pin in locked.files),
            },
        ),
        inputs=(
            Input(name="root", key=root.key, output="root"),
            Input(name="archive", key=built.key, output="archive"),
        ),
        needs=Needs(disk=1024**3, seconds=10, limit=3600),
    )
