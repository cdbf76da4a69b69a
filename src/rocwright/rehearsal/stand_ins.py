"""A stand-in made ready: the steps of its root, and the plan of what it is like."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rocbase.errors import InputError
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Component
from rocwright.catalog.place import Place
from rocwright.flow import lock as make_new_lock
from rocwright.home import Home
from rocwright.model.architecture import host_architecture
from rocwright.model.steps import BaseAction, Plan, Step
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.aliases import catalog_for
from rocwright.plan.resolve.files import read_lock
from rocwright.plan.resolve.model import Lock, LockedComponent, LockedRoot
from rocwright.plan.resolve.network import NetworkUpstream
from rocwright.plan.roots import root_steps
from rocwright.project import Project, project_of
from rocwright.rehearsal.book import StandIn
from rocwright.sources.answers import remembered
from rocwright.store.model import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A stand-in that can be planned with: the steps that make its root, the last of which is the root
    itself; the plan and lock of the request that it is like, None where it is like none, and the catalog as
    that request sees it."""

    stand_in: StandIn
    steps: tuple[Step, ...]
    compiler_reads: tuple[str, ...]
    env: Mapping[str, str]
    catalog: Catalog
    plan: Plan | None = None
    lock: Lock | None = None

    @property
    def root(self) -> Step:
        return self.steps[-1]

    def built(self, component: str) -> Step | None:
        """The step that builds a component in the plan that it is like."""
        steps = self.plan.steps if self.plan is not None else ()
        return next((step for step in steps if step.name == component), None)

    def below(self, keys: Sequence[str]) -> tuple[Step, ...]:
        """The steps with these keys, and those that they need, in the plan's order."""
        by_key = {step.key: step for step in self.plan.steps} if self.plan is not None else {}
        waiting, visited = list(keys), set[str]()
        while waiting:
            key = waiting.pop()
            if key in by_key and key not in visited:
                visited.add(key)
                waiting += [item.key for item in by_key[key].inputs]
        return tuple(step for key, step in by_key.items() if key in visited)


@dataclass(slots=True, kw_only=True)
class StandIns:
    """Makes stand-ins ready, each once; what archives and indexes said is kept, unless asked `anew`."""

    catalog: Catalog
    home: Home
    store: Store
    say: Callable[[str], None]
    anew: bool = False
    _ready: dict[str, Ready] = field(default_factory=dict)

    def ready(self, stand_in: StandIn) -> Ready:
        """Raises what resolving raises."""
        if stand_in.name not in self._ready:
            make = self._of_packages if stand_in.like is None else self._like
            self._ready[stand_in.name] = make(stand_in)
        return self._ready[stand_in.name]

    def source(
        self, base: str, component: Component, version: str, places: Sequence[Place]
    ) -> LockedComponent:
        """The exact source of a component, from the first place that has it.

        Raises FetchError, NetworkError.
        """
        question = [base, component.name, version, [place.model_dump(mode="json") for place in places]]

        def find() -> LockedComponent:
            self.say(f"rehearse: the source of {component.name} {version}")
            with self._upstream(base) as upstream:
                return upstream.component(component, version, places)

        return remembered(self.home.rehearsals, LockedComponent, question, find, again=self.anew)

    def _upstream(self, base: str) -> NetworkUpstream:
        definition, release = self.catalog.base(base)
        ours = (self.catalog, self.store, self.home, self.say)
        return NetworkUpstream(definition, release, *ours, architecture=host_architecture())

    def _of_packages(self, stand_in: StandIn) -> Ready:
        base, release = self.catalog.base(stand_in.base)
        packages = tuple(sorted({*base.common, *self.catalog.system_packages(base, stand_in.system)}))

        def find() -> LockedRoot:
            self.say(f"rehearse: the packages of {stand_in.base} for {stand_in.name}")
            with self._upstream(stand_in.base) as upstream:
                return upstream.root("build", base, release, packages)

        question = [stand_in.base, packages, host_architecture().value]
        root = remembered(self.home.rehearsals, LockedRoot, question, find, again=self.anew)
        return Ready(
            stand_in=stand_in,
            steps=root_steps(root, self.catalog),
            compiler_reads=base.compiler_reads,
            env=base.env,
            catalog=self.catalog,
        )

    def _like(self, stand_in: StandIn) -> Ready:
        assert stand_in.like is not None
        catalog = catalog_for(stand_in.like, self.catalog)
        project = replace(project_of(stand_in.like, Path.cwd(), self.home), catalog=catalog)
        ours = replace(project, lock_path=self.home.rehearsals / project.lock_path.name)
        # a build of the same may have its root and trees in the store
        candidates = () if self.anew else (project, ours)
        pair = next((candidate for candidate in map(_locked, candidates) if candidate is not None), None)
        if pair is None:
            ours.lock_path.parent.mkdir(parents=True, exist_ok=True)
            pair = _planned(ours, make_new_lock(ours, self.say))
        lock, plan = pair
        base, _ = catalog.base(stand_in.base)
        ready = Ready(
            stand_in=stand_in,
            steps=(),
            compiler_reads=base.compiler_reads,
            env=base.env,
            catalog=catalog,
            plan=plan,
            lock=lock,
        )
        root = next(step for step in plan.steps if step.name == "root/build")
        packages = (step for step in ready.below([root.key]) if step != root)
        return replace(ready, steps=(*packages, customized(root, stand_in)))


def customized(root: Step, stand_in: StandIn) -> Step:
    """The step of the root, with what the stand-in changes in it.

    Raises InputError where the root is made of an image.
    """
    if not stand_in.customized:
        return root
    assert isinstance(root.action, BaseAction)
    if root.action.family == "image":
        raise InputError(
            f"the stand-in {stand_in.name} cannot be customized",
            cause=f"{stand_in.base} is made of an image, and not of packages alone",
            next_step="take a base of packages for it, or none of `moves` and `customize`",
        )
    action = root.action.model_copy(update={"customize": stand_in.customized})
    return root.model_copy(update={"name": f"{root.name}/{stand_in.name}", "action": action})


def _locked(project: Project) -> tuple[Lock, Plan] | None:
    """A lock of before and its plan, where there is one that is whole and still fits the recipes."""
    with contextlib.suppress(InputError):
        lock = read_lock(project.lock_path, project.request)
        return None if lock.pending else _planned(project, lock)
    return None


def _planned(project: Project, lock: Lock) -> tuple[Lock, Plan]:
    return lock, make_plan(lock, project.catalog)
