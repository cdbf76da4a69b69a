"""A project: what is asked for, where its lock and artifacts lie, and what of its plan is built."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from rocbase.errors import InputError
from rocbase.files.atomic import sha256_bytes
from rocbase.model import canonical_json
from rocwright.catalog.load import Catalog, the_catalog
from rocwright.config import store_of
from rocwright.home import Home
from rocwright.model.steps import Plan, Step
from rocwright.plan.resolve.aliases import catalog_for
from rocwright.plan.resolve.files import read_lock, read_project, read_request
from rocwright.plan.resolve.folder import LOCK, PROJECT
from rocwright.plan.resolve.model import Lock, Request
from rocwright.store.model import Output, Store, finished

if TYPE_CHECKING:
    from rocwright.plan.resolve.standing import LocksOf


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What is asked for, and where its lock and its artifacts lie.

    `row` is what a person asked for, where the request goes on from there to what upstream has since. `at` is
    a store in the place of the home folder's.
    """

    request: Request
    lock_path: Path
    output: Path
    home: Home = field(default_factory=Home.default)
    catalog: Catalog = field(default_factory=the_catalog)
    row: Request | None = None
    at: Store | None = None

    @property
    def variant(self) -> str:
        """What was asked for beside stack, GPUs and base: it tells the rows of a project apart."""
        return (self.row or self.request).variant

    @property
    def store(self) -> Store:
        return self.at or store_of(self.home)

    @property
    def last_plan(self) -> Path:
        """Where the plan that was built last for this stack, GPU and base is kept."""
        return self.plan_path("last")

    def plan_path(self, name: str) -> Path:
        """Where a plan is kept whose outputs no clean-up takes: the last one, or that of a channel."""
        request = self.row or self.request
        # without a row, another version of a component is a change of the same plan
        named = request if self.row is not None else request.model_copy(update={"versions": {}})
        which = sha256_bytes(canonical_json([named.gpu, named.variant]))[:8]
        words = (request.stack, request.base.replace(":", "-"), which, name)
        return self.home.plans / f"{'-'.join(words)}.json"


def project_in(folder: Path, home: Home | None = None, request: Request | None = None) -> Project:
    """The project whose rocwright.toml is in `folder`; `request` stands for what that asks for. Raises
    InputError."""
    request = request or read_request(folder / PROJECT)
    return Project(
        request=request,
        lock_path=folder / LOCK,
        output=folder / "rocwright-out",
        home=home or Home.default(),
        catalog=catalog_for(request, the_catalog()),
    )


def project_of(request: Request, folder: Path, home: Home | None = None) -> Project:
    """A project without a project file: its lock is kept in the home folder."""
    home = home or Home.default()
    words = [request.stack, request.base.replace(":", "-"), *request.gpu]
    if request.variant:
        words.append(sha256_bytes(canonical_json(request.model_dump()))[:8])
    name = "-".join(words)
    return Project(
        request=request,
        lock_path=home.locks / f"{name}.lock",
        output=folder / "rocwright-out",
        home=home,
        catalog=catalog_for(request, the_catalog()),
    )


def own_project(folder: Path, row: Request, home: Home | None = None) -> Project:
    """The project of a row of the project file in `folder`: only the file's request has its lock there."""
    file = read_project(folder / PROJECT)
    if file.rows == (row,) or (file.stack and file.request == row):
        return project_in(folder, home)
    return project_of(row, folder, home)


def lock_offline(project: Project) -> Lock:
    """Return the lock as it is, else the one that comes with rocwright, else one from the catalog alone.

    Nothing is asked outside or written. Raises what resolving raises.
    """
    from rocwright.plan.resolve.lock import make_lock
    from rocwright.plan.resolve.shipped import preferred, shipped_lock
    from rocwright.plan.resolve.upstream import OfflineUpstream

    request, catalog = project.request, project.catalog
    if project.lock_path.exists():
        return read_lock(project.lock_path, request)
    outside, liked = OfflineUpstream(request.architecture), preferred(catalog, request)
    return shipped_lock(catalog, request) or make_lock(
        request, catalog, outside, lambda _: None, locks_below=locks_below(project), **liked
    )


def locks_below(project: Project) -> LocksOf:
    """Return the locks in the home folder on which that of a project may stand: those that fit the recipes
    here."""
    from rocwright.plan.make import make_plan
    from rocwright.plan.resolve.standing import kept_below

    return kept_below(project.home, lambda candidate: make_plan(candidate, project.catalog))


def last_plan(project: Project) -> Plan | None:
    """The plan that was built last, if it can be read."""
    with contextlib.suppress(OSError, ValidationError):
        return Plan.model_validate_json(project.last_plan.read_bytes())
    return None


def built_outputs(project: Project, plan: Plan) -> dict[str, Output]:
    """The main output of each component, by its name. Raises InputError where one is not built."""
    outputs: dict[str, Output] = {}
    for step in plan.steps:
        if step.name not in plan.artifacts:
            continue
        record = finished(project.store, step.key)
        if record is None:
            raise InputError(
                f"{step.name} is not built for this lock",
                cause="it was never built, or its output was removed",
                next_step="rocwright build",
            )
        if step.name == step.component:
            outputs[step.component] = record.outputs[0]
    return outputs


def published_wheels(project: Project, plan: Plan) -> dict[str, tuple[Output, ...]]:
    """The wheels that were taken as others published them, by component; source distributions among them too.

    Raises InputError where they were not fetched.
    """
    built_outputs(project, plan)
    kinds = {step.component: project.catalog.component(step.component).kind for step in _artifacts(plan)}
    records = {step.component: project.store.record(step.key) for step in _artifacts(plan)}
    return {
        name: record.outputs
        for name, record in records.items()
        if record is not None and kinds[name] == "wheels"
    }


def _artifacts(plan: Plan) -> list[Step]:
    return [step for step in plan.steps if step.name in plan.artifacts]


def kept_keys(home: Home) -> set[str]:
    """The keys of every plan that was built last or that a channel holds: a clean-up leaves them alone."""
    keys: set[str] = set()
    for path in home.plans.glob("*.json"):
        with contextlib.suppress(OSError, ValidationError):
            keys |= {step.key for step in Plan.model_validate_json(path.read_bytes()).steps}
    return keys
