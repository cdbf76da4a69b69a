"""How the environment of a wheel stack is made: from the root file system of its base, the wheels that were
built, and what these require; made once, kept by what it is made of, and only read by what runs in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from filelock import FileLock
from packaging.utils import canonicalize_name

from rocbase.errors import InputError
from rocbase.files.atomic import sha256_bytes, write_atomic
from rocbase.folders.temporary import temporary_folder
from rocbase.model import canonical_json
from rocwheel.wheels.metadata import parse_name
from rocwright import sandbox
from rocwright.bases.roots import remove_tree, unpacked_root
from rocwright.catalog.environment import environment as wanted_by
from rocwright.catalog.load import Catalog
from rocwright.execution.fetch import fetch
from rocwright.execution.install import Wheel, read_wheel
from rocwright.execution.progress import PlainProgress, Progress
from rocwright.execution.runs import UnderWay
from rocwright.model.steps import FilePin, Plan
from rocwright.plan.make import make_plan
from rocwright.plan.packages import RUN_WHEELS
from rocwright.plan.values import chosen_values, present
from rocwright.project import Project, built_outputs, published_wheels
from rocwright.resolve.aliases import ROCM, base_of
from rocwright.resolve.model import Lock
from rocwright.serving.environments import ABOUT, ENGINE, HOME, INSIDE, Environment, Installed, read
from rocwright.serving.layer import Layer
from rocwright.serving.requirements import lacking, needed
from rocwright.serving.requirements_lock import locked_requirements
from rocwright.store.model import Output, Record
from rocwright.verify.prepare import CHECK_ROOT, made_steps

SCHEMA = 1
"""Raised when an environment is made in another way of the same things."""


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
    built += [one for outputs in published_wheels(project, plan).values() for one in outputs]
    made = _made(project, lock, plan, say, progress or PlainProgress())
    if CHECK_ROOT not in made:
        raise InputError(
            f"the lock of {project.request.stack} has no root file system to run in",
            cause="none of its recipes has a check that runs a script",
            next_step="add a [[check]] of the kind script to a recipe of it",
        )
    root = made[CHECK_ROOT].output("root").sha256
    outputs = [
        *built,
        *(one for name, record in made.items() if name != CHECK_ROOT for one in record.outputs),
    ]
    outputs = [one for one in outputs if one.filename.endswith(".whl")]
    layer = Layer(
        root=unpacked_root(project.store, root, project.home.roots, say),
        python=base_of(lock, project.catalog)[1].interpreter or "python3",
        engine=sandbox.pick(engine or ENGINE, project.home.probes),
    )
    required = [*_required(project, lock, layer, outputs, extra, say)]
    # of what only checks install, another version may be required
    others = {_project(one.filename) for one in required}
    wheels = [
        Installed(filename=one.filename, sha256=one.sha256)
        for one in outputs
        if one in built or _project(one.filename) not in others
    ]
    wheels = sorted({*wheels, *required}, key=lambda one: one.filename)
    told = {
        "schema": SCHEMA,
        "root": root,
        "python": layer.python,
        "wheels": [(one.filename, one.sha256) for one in wheels],
    }
    found = Environment(
        key=sha256_bytes(canonical_json(told)),
        stack=project.request.stack,
        gpu=lock.request.gpu,
        base=lock.request.base,
        root=root,
        python=layer.python,
        wheels=tuple(wheels),
        env=variables(lock, project.catalog),
    )
    _make(project, found, layer, say)
    return found


def _project(filename: str) -> str:
    return str(canonicalize_name(parse_name(filename).name))


def variables(lock: Lock, catalog: Catalog) -> dict[str, str]:
    """What the GPUs of a lock want of the environment of a run, and what its recipes say of one."""
    found: dict[str, str] = {}
    for gpu in lock.request.gpu:
        quirks = wanted_by(catalog, catalog.target(gpu), "run")
        found |= {one.variable: one.value for one in quirks if one.need != "optional"}
    for one in lock.components:
        serve = catalog.component(one.name).serve
        found |= chosen_values(serve.env, present(lock)) if serve is not None else {}
    return found


def _made(
    project: Project, lock: Lock, plan: Plan, say: Callable[[str], None], progress: Progress
) -> dict[str, Record]:
    """The root file system, and the wheels that run beside what was built, ROCm's among them."""
    names = [CHECK_ROOT, RUN_WHEELS]
    if lock.rocm is not None and project.catalog.provider(lock.rocm.name).kind == "wheels":
        names += [ROCM, *(f"{ROCM}/{one.name}" for one in lock.rocm.sdists)]
    steps = [one for one in plan.steps if one.name in names]
    records = {one.name: project.store.record(one.key) for one in steps}
    if all(
        record is not None and all(project.store.has(one.sha256, one.size) for one in record.outputs)
        for record in records.values()
    ):
        return {name: record for name, record in records.items() if record is not None}
    with UnderWay("run", project.request, project.home, say, lock=lock) as under_way:
        made = made_steps(names, project, plan, under_way, progress)
        under_way.ended("built")
    return made


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
                path.symlink_to(project.store.verified(sha256))
            return read_wheel(path)

        had = [wheel(one.filename, one.sha256) for one in outputs]
        about = layer.about()
        there = dict(about.there) | {str(canonicalize_name(one.name)): one.version for one in had}
        asked = [*(need for one in had for need in one.needs), *map(Requirement, extra)]
        wanted = lacking(asked, there, about.markers)
        if not wanted:
            return
        locked = locked_requirements(
            project.lock_path,
            wanted,
            about.markers["python_version"],
            lock.request.architecture,
            project.store,
            say,
        )

        def requires(pins: Sequence[FilePin]) -> list[Sequence[Requirement]]:
            fetch(pins, project.store, project.home.apt, Path(folder) / "fetch", say)
            return [wheel(pin.filename, pin.sha256).needs for pin in pins]

        for pin in needed(wanted, locked.files, requires, there, about.markers):
            yield Installed(filename=pin.filename, sha256=pin.sha256)


def _make(project: Project, wanted: Environment, layer: Layer, say: Callable[[str], None]) -> None:
    folder = wanted.folder(project.home)
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{wanted.key}.lock")):
        if read(project.home, wanted.key) == wanted:
            return
        if not folder.is_dir():
            say(f"environment: {len(wanted.wheels)} wheels on {wanted.base}")
            temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".making-"))
            try:
                paths = {one.filename: project.store.verified(one.sha256) for one in wanted.wheels}
                layer.install(paths, temporary / INSIDE)
                (temporary / HOME).mkdir(mode=0o700)
                temporary.rename(folder)
            except BaseException:
                remove_tree(temporary)
                raise
        write_atomic(folder / ABOUT, wanted.model_dump_json(indent=2) + "\n")
