"""What a server needs of a build: had from the store or built, and laid out to be run."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from rocbase.errors import InputError
from rocbase.files.atomic import write_atomic
from rocwright import flow
from rocwright.catalog.model import Component
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import Progress
from rocwright.execution.runs import UnderWay
from rocwright.model.steps import ImageAction, Plan, Step
from rocwright.plan.decide import State
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock
from rocwright.plan.roots import RUN_ROOT
from rocwright.project import Project
from rocwright.serving.choose import served_component
from rocwright.serving.model import Place
from rocwright.serving.wheels import Agree, ask, makes_wheels, not_built
from rocwright.serving.words import IMAGE
from rocwright.sources.archive import unpack
from rocwright.sources.bases.roots import remove_tree, unpacked_root
from rocwright.store.model import Output, finished, verified
from rocwright.verify.prepare import CHECK_ROOT, made_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """What is served: its recipe, its lock, and its version; all of it is in the store here."""

    project: Project
    lock: Lock
    plan: Plan
    component: Component
    version: str


def product_of(
    project: Project,
    engine: str | None,
    progress: Progress,
    *,
    contained: bool = False,
    build: bool = True,
    before_build: Callable[[], None] = lambda: None,
    agree: Agree = lambda line: None,
) -> Product:
    """The artifact of a project, built or fetched where it is not here, after `before_build` is called; its
    image only where it is to run `contained`. Without `build` nothing is built, fetched or written. Raises
    what a build raises, InputError where there is no image, and without `build` where something would have
    to be built, and what `agree` raises.
    """
    component = served_component(project.catalog, project.request.stack)
    if component is None:
        raise not_served(project)
    if not (build or project.lock_path.exists()):
        raise not_built(project.request)
    locked = flow.current_lock(project, progress.say)
    plan = make_plan(locked, project.catalog)
    needed = (_image_step(plan, component)[0] if contained else _step(plan, component)).name
    _, decisions = flow.planned(project, locked, (needed,))
    if any(decision.state is State.RUN for decision in decisions):
        before_build()
        if not build:
            raise not_built(project.request)
        progress.say(f"{project.request.stack} is not built here yet: building it first")
        ask(project, decisions, agree)
    if build:
        with progress:
            built = flow.build(project, locked, BuildOptions(engine=engine), progress, step_names=(needed,))
        if built.failures:
            raise built.failures[0][1]
    version = next(entry.version for entry in locked.components if entry.name == component.name)
    return Product(project=project, lock=locked, plan=plan, component=component, version=version)


def check_place(component: Component, place: Place) -> None:
    """Raise InputError for an image of others in a container: it is unpacked, and its name is not theirs."""
    if component.kind == IMAGE and place != "host":
        raise InputError(
            f"{component.name} is not served in {place}",
            cause="the image of its project is unpacked, and its server runs in a sandbox",
            next_step=f"leave --in out, or rocwright export run, which writes the line for {place}",
        )


def not_served(project: Project) -> InputError:
    """The refusal of a stack that has nothing to serve; one of wheels runs programs all the same."""
    stack = project.request.stack
    if makes_wheels(project.catalog, stack):
        return InputError(
            f"{stack} has no server",
            cause="it is a stack of wheels, in whose environment programs run",
            next_step=f"rocwright run {stack} -- python x.py, or --shell, or --jupyter",
        )
    stacks = [name for name in project.catalog.stacks if served_component(project.catalog, name)]
    return InputError(
        f"{stack} has no server",
        cause="no recipe of it has a [server] table",
        next_step=f"run one of {', '.join(stacks)}",
    )


def root_of(product: Product, progress: Progress, *, dry: bool = False) -> Path:
    """The folder of the base's root file system that the product runs on: the one that it is checked in where
    there is none for runs alone. It is made and unpacked, but not in a `dry` run. Raises InputError where
    there is neither, and in a dry run where it is not made."""

    def folder(sha256: str) -> Path:
        roots = product.project.home.roots
        return roots / sha256 if dry else unpacked_root(product.project.store, sha256, roots, progress.say)

    if product.component.kind == IMAGE:
        return folder(_output(product, _step(product.plan, product.component)).sha256)
    steps = {step.name: step for step in product.plan.steps}
    name = next((root for root in (RUN_ROOT, CHECK_ROOT) if root in steps), "")
    project = product.project
    if not name:
        raise InputError(
            f"the lock of {project.request.stack} has no root file system to run in",
            cause=f"{product.component.name} has neither an [image] nor a [[check]] that runs a script",
            next_step="add one of them to its recipe",
        )
    step = steps[name]
    record = finished(project.store, step.key)
    if record is None and dry:
        raise not_built(project.request)
    if record is None:
        under_way = UnderWay("run", project.request, project.home, progress.say, lock=product.lock)
        with under_way:
            record = made_steps((name,), project, product.plan, under_way, progress)[name]
            under_way.ended("built")
    if not dry:
        project.store.bring(step.key)
    return folder(record.output("root").sha256)


def program_of(product: Product, say: Callable[[str], None], *, dry: bool = False) -> Path:
    """The folder with the product's archive unpacked, which is kept for the next time; a `dry` run unpacks
    nothing."""
    output = _output(product, _step(product.plan, product.component))
    project = product.project
    target = project.home.programs / output.sha256
    if dry:
        return target
    with contextlib.suppress(FileNotFoundError):
        os.utime(target)  # its last use, for clean
        return target
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with FileLock(target.with_name(f"{target.name}.lock")):
        if target.is_dir():
            return target
        say(f"unpacking {output.filename}")
        temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=".unpacking-"))
        try:
            archive = verified(project.store, output.sha256)
            unpack(archive, temporary, filename=output.filename, git=True)
            temporary.chmod(0o755)
            note = {"stack": project.request.stack, "component": product.component.name}
            write_atomic(target.with_name(f"{target.name}.json"), json.dumps(note) + "\n")
            temporary.rename(target)
        except BaseException:
            remove_tree(temporary)
            raise
    return target


def image_of(product: Product) -> tuple[Path, ImageAction]:
    """The product's image as a file, and what it is. Raises InputError where it has none."""
    step, action = _image_step(product.plan, product.component)
    return verified(product.project.store, _output(product, step).sha256), action


def _image_step(plan: Plan, component: Component) -> tuple[Step, ImageAction]:
    for step in plan.steps:
        if step.component == component.name and isinstance(step.action, ImageAction):
            return step, step.action
    raise InputError(
        f"{component.name} has no image to run in a container",
        cause="its recipe has no [image] table",
        next_step="--in host",
    )


def _step(plan: Plan, component: Component) -> Step:
    name = f"{IMAGE}/{component.name}" if component.kind == IMAGE else component.name
    return next(step for step in plan.steps if step.name == name)


def _output(product: Product, step: Step) -> Output:
    record = product.project.store.record(step.key)
    if record is None:
        raise not_built(product.project.request)
    return record.outputs[0]
