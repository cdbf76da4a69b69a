"""How the environment of a wheel stack is made: from the root file system of its base, the wheels that were
built, and what these require; made once, kept by what it is made of, and only read by what runs in it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from filelock import FileLock
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rocbase.errors import ConflictError, InputError
from rocbase.files.atomic import sha256_bytes, write_atomic
from rocbase.folders.temporary import temporary_folder
from rocbase.model import canonical_json
from rocwheel.wheels.metadata import parse_name
from rocwright import sandbox
from rocwright.catalog.environment import environment as wanted_by
from rocwright.catalog.load import Catalog
from rocwright.execution.fetch import fetch
from rocwright.execution.install import Wheel, read_wheel
from rocwright.execution.progress import PlainProgress, Progress
from rocwright.execution.runs import UnderWay
from rocwright.model.architecture import Architecture
from rocwright.model.steps import FilePin, IndexOrigin, Plan
from rocwright.plan.make import make_plan
from rocwright.plan.packages import RUN_WHEELS
from rocwright.plan.resolve.aliases import ROCM, base_of
from rocwright.plan.resolve.model import Lock, LockedPython
from rocwright.plan.resolve.required import FILE, path_of
from rocwright.plan.resolve.required import read as read_required
from rocwright.plan.values import chosen_values, present
from rocwright.project import Project, built_outputs, published_wheels
from rocwright.serving.environments import ABOUT, ENGINE, HOME, INSIDE, Environment, Installed, read
from rocwright.serving.layer import Layer
from rocwright.sources.bases.roots import remove_tree, unpacked_root
from rocwright.store.model import Output, Record, Store, finished, verified
from rocwright.verify.prepare import CHECK_ROOT, made_steps

# Raised when an environment is made in another way of the same things.
SCHEMA = 1


def prepare(
    project: Project,
    lock: Lock,
    say: Callable[[str], None],
    progress: Progress | None = None,
    *,
    extra: Sequence[str] = (),
    engine: str | None = None,
) -> Environment:
    """The environment of a stack that is built, with `extra` requirements (PEP 508) of its own; made where it
    is not there yet.

    Raises InputError where the stack is not built or has no root file system to run in, CheckError where its
    wheels do not install, ConflictError and NetworkError where what they require cannot be had.
    """
    plan = make_plan(lock, project.catalog)
    built = [*built_outputs(project, plan).values()]
    built += [output for outputs in published_wheels(project, plan).values() for output in outputs]
    records = _made_records(project, lock, plan, say, progress or PlainProgress())
    if CHECK_ROOT not in records:
        raise InputError(
            f"the lock of {project.request.stack} has no root file system to run in",
            cause="none of its recipes has a check that runs a script",
            next_step="add a [[check]] of the kind script to a recipe of it",
        )
    root = records[CHECK_ROOT].output("root").sha256
    outputs = [
        *built,
        *(output for name, record in records.items() if name != CHECK_ROOT for output in record.outputs),
    ]
    outputs = [output for output in outputs if output.filename.endswith(".whl")]
    layer = Layer(
        root=unpacked_root(project.store, root, project.home.roots, say),
        python=base_of(lock, project.catalog)[1].interpreter or "python3",
        engine=sandbox.pick(engine or ENGINE, project.home.probes),
    )
    required = [*_required(project, lock, layer, outputs, extra, say)]
    # of what only checks install, another version may be required
    required_projects = {_project(wheel.filename) for wheel in required}
    wheels = [
        Installed(filename=output.filename, sha256=output.sha256)
        for output in outputs
        if output in built or _project(output.filename) not in required_projects
    ]
    wheels = sorted({*wheels, *required}, key=lambda wheel: wheel.filename)
    identity = {
        "schema": SCHEMA,
        "root": root,
        "python": layer.python,
        "wheels": [(wheel.filename, wheel.sha256) for wheel in wheels],
    }
    environment = Environment(
        key=sha256_bytes(canonical_json(identity)),
        stack=project.request.stack,
        gpu=lock.request.gpu,
        base=lock.request.base,
        root=root,
        python=layer.python,
        wheels=tuple(wheels),
        env=variables(lock, project.catalog),
    )
    _make(project, environment, layer, say)
    return environment


def _project(filename: str) -> str:
    return str(canonicalize_name(parse_name(filename).name))


def variables(lock: Lock, catalog: Catalog) -> dict[str, str]:
    """What the GPUs of a lock want of the environment of a run, and what its recipes say of one."""
    values: dict[str, str] = {}
    for gpu in lock.request.gpu:
        quirks = wanted_by(catalog, catalog.target(gpu), "run")
        values |= {quirk.variable: quirk.value for quirk in quirks if quirk.need != "optional"}
    for component in lock.components:
        serve = catalog.component(component.name).serve
        values |= chosen_values(serve.env, present(lock)) if serve is not None else {}
    return values


def _made_records(
    project: Project, lock: Lock, plan: Plan, say: Callable[[str], None], progress: Progress
) -> dict[str, Record]:
    """The root file system, and the wheels that run beside what was built, ROCm's among them."""
    names = [CHECK_ROOT, RUN_WHEELS]
    if lock.rocm is not None and project.catalog.provider(lock.rocm.name).kind == "wheels":
        names += [ROCM, *(f"{ROCM}/{sdist.name}" for sdist in lock.rocm.sdists)]
    steps = [step for step in plan.steps if step.name in names]
    records = {step.name: record for step in steps if (record := finished(project.store, step.key))}
    if len(records) == len(steps):
        return records
    with UnderWay("run", project.request, project.home, say, lock=lock) as under_way:
        built = made_steps(names, project, plan, under_way, progress)
        under_way.ended("built")
    return built


def _required(
    project: Project,
    lock: Lock,
    layer: Layer,
    outputs: Sequence[Output],
    extra: Sequence[str],
    say: Callable[[str], None],
) -> Iterator[Installed]:
    """What the wheels require, and nothing of them, of the lock or of the base brings; `extra` likewise."""
    from packaging.requirements import Requirement

    with temporary_folder("environment") as folder:

        def wheel(filename: str, sha256: str) -> Wheel:
            path = Path(folder) / filename
            if not path.is_symlink():
                path.symlink_to(verified(project.store, sha256))
            return read_wheel(path)

        wheels = [wheel(output.filename, output.sha256) for output in outputs]
        facts = layer.about()
        installed = dict(facts.there) | {
            str(canonicalize_name(metadata.name)): metadata.version for metadata in wheels
        }
        requirements = [*(need for metadata in wheels for need in metadata.needs), *map(Requirement, extra)]
        missing = lacking(requirements, installed, facts.markers)
        if not missing:
            return
        locked = locked_requirements(
            project.lock_path,
            missing,
            facts.markers["python_version"],
            lock.request.architecture,
            project.store,
            say,
        )

        def requires(pins: Sequence[FilePin]) -> list[Sequence[Requirement]]:
            fetch(pins, project.store, project.home, Path(folder) / "fetch", say)
            return [wheel(pin.filename, pin.sha256).needs for pin in pins]

        for pin in needed(missing, locked.files, requires, installed, facts.markers):
            yield Installed(filename=pin.filename, sha256=pin.sha256)


def _make(project: Project, environment: Environment, layer: Layer, say: Callable[[str], None]) -> None:
    folder = environment.folder(project.home)
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{environment.key}.lock")):
        if read(project.home, environment.key) == environment:
            return
        if not folder.is_dir():
            say(f"environment: {len(environment.wheels)} wheels on {environment.base}")
            temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".making-"))
            try:
                paths = {
                    wheel.filename: verified(project.store, wheel.sha256) for wheel in environment.wheels
                }
                layer.install(paths, temporary / INSIDE)
                (temporary / HOME).mkdir(mode=0o700)
                temporary.rename(folder)
            except BaseException:
                remove_tree(temporary)
                raise
        write_atomic(folder / ABOUT, environment.model_dump_json(indent=2) + "\n")


def lacking(
    requirements: Iterable[Requirement], installed: Mapping[str, str], markers: Mapping[str, str]
) -> tuple[str, ...]:
    """The requirements (PEP 508, sorted) that hold with these `markers` and that nothing `installed` answers;
    `installed` are versions by normal name."""
    return tuple(
        sorted(
            {
                _bare(requirement)
                for requirement in requirements
                if _holds(requirement, markers)
                and not _is_met(requirement, installed.get(canonicalize_name(requirement.name)))
            }
        )
    )


def needed(
    requirements: Sequence[str],
    pins: Sequence[FilePin],
    requires: Callable[[Sequence[FilePin]], Iterable[Iterable[Requirement]]],
    installed: Mapping[str, str],
    markers: Mapping[str, str],
) -> tuple[FilePin, ...]:
    """The files that `requirements` lead to, without what only something that is `installed` requires.

    An index resolves to all that a requirement may lead to; what was built here, or what the base brings,
    must not come from it a second time.
    """
    by_name = {
        canonicalize_name(pin.origin.project): pin for pin in pins if isinstance(pin.origin, IndexOrigin)
    }
    chosen: dict[str, FilePin] = {}
    followed: set[tuple[str, str]] = set()
    todo = [Requirement(text) for text in requirements]
    while todo:
        this: list[tuple[FilePin, set[str]]] = []
        for requirement in todo:
            name = canonicalize_name(requirement.name)
            extras = {extra for extra in ("", *requirement.extras) if (name, extra) not in followed}
            if _is_met(requirement, installed.get(name)) or name not in by_name or not extras:
                continue
            followed |= {(name, extra) for extra in extras}
            chosen[name] = by_name[name]
            this.append((by_name[name], extras))
        todo = [
            need
            for (_, extras), needs in zip(this, requires([pin for pin, _ in this]), strict=True)
            for need in needs
            if any(_holds(need, {**markers, "extra": extra}) for extra in extras)
        ]
    return tuple(sorted(chosen.values(), key=lambda pin: pin.filename))


def _holds(requirement: Requirement, markers: Mapping[str, str]) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": "", **markers})


def _is_met(requirement: Requirement, version: str | None) -> bool:
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def _bare(requirement: Requirement) -> str:
    """Without its marker, which was asked already, and for another Python than the resolver's."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return (
        f"{requirement.name}{extras}{f' @ {requirement.url}' if requirement.url else requirement.specifier}"
    )


def locked_requirements(
    lock: Path,
    requirements: Sequence[str],
    python: str,
    architecture: Architecture,
    store: Store,
    say: Callable[[str], None],
) -> LockedPython:
    """The files for `requirements` and all that they require, for CPython `python`: as they were locked, or
    from the index, and locked from then on.

    Raises InputError for a file that cannot be read, ConflictError where something has no wheel,
    NetworkError.
    """
    path = path_of(lock)
    entries = read_required(path)
    ordered = tuple(sorted(requirements))
    locked = next((entry for entry in entries if (entry.version, entry.wanted) == (python, ordered)), None)
    if locked is not None:
        return locked
    from rocwright.sources import index  # here: it takes a while, and a lock that is there needs none of it

    say(f"lock: Python packages for {', '.join(ordered)}")
    resolved = index.resolve(ordered, python, architecture, store)
    if resolved.sdists:
        raise ConflictError(
            f"there are no wheels of {', '.join(sdist.pin.filename for sdist in resolved.sdists)}",
            cause="only wheels are installed into an environment, and the index has source distributions",
            next_step="build a wheel of it as a component of the stack",
        )
    new_entry = LockedPython(version=python, wanted=ordered, files=resolved.wheels)
    updated = [*(entry for entry in entries if entry.wanted != ordered), new_entry]
    text = json.dumps(FILE.dump_python(tuple(updated), mode="json"), indent=2)
    write_atomic(path, text + "\n")
    say(f"lock: written to {path}")
    return new_entry
