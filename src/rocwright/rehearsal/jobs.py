"""What is to be done to rehearse a component of a row: trees with their edits, steps, and what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from rocbase.errors import ExplainedError, FetchError, NetworkError
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Component
from rocwright.catalog.place import Place
from rocwright.model.edits import Edit
from rocwright.model.steps import Step, TreeAction
from rocwright.model.versions import version_in
from rocwright.plan.edits import edits_as_written
from rocwright.plan.make import AS_PUBLISHED
from rocwright.plan.resolve.aliases import base_of
from rocwright.plan.resolve.model import Lock, LockedComponent
from rocwright.plan.values import environment_of, present, versions_of
from rocwright.rehearsal.book import Book, Rehearsal, Trial, Within
from rocwright.rehearsal.report import untried
from rocwright.rehearsal.result import TrialTally
from rocwright.rehearsal.stand_ins import Ready, StandIns
from rocwright.rehearsal.steps import TrialRequest, built_trial_step, source_step, tree_step, trial_step
from rocwright.rehearsal.wheels import PUBLISHED, unlocked

# Finds the exact source of a version; raises FetchError or NetworkError.
Find = Callable[[Component, str, Sequence[Place]], LockedComponent]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactSource:
    """The exact source, and why it is not that of the row's own version; "" where it is."""

    locked: LockedComponent
    instead: str = ""


def source_of(
    component: Component, version: str, base: str, rehearsal: Rehearsal, find: Find
) -> ExactSource | str:
    """The source to rehearse a version with, as it is built on `base`; or why there is none."""
    release = component.released(version)
    places = [*release.for_base(base).places]
    places += [place for place in release.every_place if place not in places]
    reasons: list[str] = []
    try:
        return ExactSource(locked=find(component, version, tuple(places)))
    except (FetchError, NetworkError) as error:
        reasons.append(answers_line(error))
    for nearest in rehearsal.nearest:
        if version_in(version, nearest.versions):
            try:
                source = find(component, nearest.version, (nearest.place,))
            except (FetchError, NetworkError) as error:
                reasons.append(answers_line(error))
                continue
            note = f"{component.name} {nearest.version} stands in for {version} ({nearest.why})"
            return ExactSource(locked=source, instead=note)
    return f"no source of {component.name} {version} can be had here: {reasons[0]}"


def answers_line(error: FetchError | NetworkError) -> str:
    """What the first places answered, in a line."""
    lines = [line.removeprefix("- ") for line in error.detail.splitlines()]
    return "; ".join(lines[:3]) or error.message


# Trials by the name of the stand-in that they are tried on, with a number for those that are apart.
Groups = Mapping[str, tuple[Ready, tuple[Trial, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedRow:
    """A row with its lock, the catalog as it sees it, and how samples are drawn."""

    lock: Lock
    catalog: Catalog
    seed: str
    every: bool

    @property
    def gpu(self) -> str:
        return self.lock.request.gpu[0]

    @property
    def tried(self) -> tuple[tuple[Component, LockedComponent], ...]:
        """The components that something is built of, and those that are wheels as others published them."""
        pairs = ((self.catalog.component(component.name), component) for component in self.lock.components)
        return tuple(pair for pair in pairs if _is_tried(pair[0]))


def _is_tried(component: Component) -> bool:
    return component.kind == PUBLISHED or (component.kind not in AS_PUBLISHED and bool(component.run))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A tree to try things in: its step, its source, and the edits in it, as the recipe says them and as they
    are applied."""

    step: Step
    source: LockedComponent
    edits: tuple[tuple[Edit, Edit], ...]


@dataclass(slots=True, kw_only=True)
class ComponentJob:
    """A component: the edits that its row `wants`, the trees, the steps in their order, and the trials of
    each step by its name. `source` is the one that stands for the component itself; `left` are the parts of
    which nothing can be tried, `reason` is why there is no tree."""

    component: Component
    locked: LockedComponent
    wants: tuple[Edit, ...]
    source: ExactSource | None = None
    trees: list[Tree] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    trials: dict[str, tuple[Ready, tuple[Trial, ...]]] = field(default_factory=dict)
    left: list[TrialTally] = field(default_factory=list)
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMaker:
    """Makes the jobs of a row, `without` the edits that were found not to apply, by the key of their tree's
    source."""

    row: RehearsedRow
    book: Book
    stand_ins: StandIns
    without: Mapping[str, Sequence[Edit]]

    def job(self, component: Component, locked: LockedComponent) -> ComponentJob:
        """What is to be done for a component."""
        if component.kind == PUBLISHED:
            return _of_wheels(component, locked)
        wants = tuple(self._edits(component, locked.version, locked.kind))
        job = ComponentJob(component=component, locked=locked, wants=wants)
        rehearsal = self.book.of(component.name, locked.version)
        if rehearsal is None:
            job.reason = f"the catalog does not say how {component.name} {locked.version} is rehearsed"
            job.left.append(_build(job.reason))
            return job
        groups = self._groups(rehearsal.trial, job)
        if rehearsal.tree == "stand-in":
            self._as_built(job, groups)
        else:
            self._of_source(job, rehearsal, groups)
        # a row whose own source leaves those trees out does not build them
        own = job.source is not None and not job.source.instead and job.source.locked.kind == "git"
        if locked.kind == "git" and not own:
            for within in rehearsal.within:
                if version_in(locked.version, within.versions):
                    self._within(job, within)
        return job

    def _edits(self, component: Component, version: str, place: str) -> Iterator[Edit]:
        """The edits that a build for the row's GPU has, as the recipe says them."""
        versions = versions_of(self.row.lock) | {component.name: version}
        for edit in edits_as_written(component.edit, version, place, versions):
            if not edit.targets or self.row.gpu in edit.targets:
                yield edit

    def _groups(self, trials: Sequence[Trial], job: ComponentJob) -> Groups:
        """The trials for the row's GPU by stand-in; what has none is left."""
        groups: dict[str, tuple[Ready, tuple[Trial, ...]]] = {}
        rocm = self.book.rocm_of(self.row.lock.request.base)
        for trial in trials:
            if trial.targets and not any(fnmatchcase(self.row.gpu, target) for target in trial.targets):
                continue
            try:
                ready = self.stand_ins.ready(self.book.stands_in(trial.on, rocm))
            except ExplainedError as error:
                job.reason = f"{error.message} ({error.cause})"
                job.left.append(untried(trial, job.reason))
                continue
            name = ready.stand_in.name
            name += f"-{len(groups)}" if trial.apart else ""
            groups[name] = ready, (*groups.get(name, (ready, ()))[1], trial)
        return groups

    def _of_source(self, job: ComponentJob, rehearsal: Rehearsal, groups: Groups) -> None:
        """In the component's own source, or that of the nearest release, with its edits."""
        component = job.component
        ready = next(iter(groups.values()))[0] if groups else None
        base = ready.stand_in.base if ready is not None else self.book.stand_in[0].base
        source = source_of(
            component,
            job.locked.version,
            self.row.lock.request.base,
            rehearsal,
            lambda *arguments: self.stand_ins.source(base, *arguments),
        )
        if isinstance(source, str):
            job.reason = source
            job.left += [untried(trial, source) for _, trials in groups.values() for trial in trials]
            job.left += [] if groups else [_build(source)]
            return
        job.source = source
        # those of a later phase go on a tree that the recipe's commands have prepared
        edits = [
            edit
            for edit in self._edits(component, source.locked.version, source.locked.kind)
            if not edit.phase
        ]
        self._add(job, component.name, source.locked, [(edit, edit) for edit in edits], groups)

    def _within(self, job: ComponentJob, within: Within) -> None:
        """In one of the trees that the component's own tree holds, from a source of its own."""
        folder = f"{within.folder}/"
        ours = [
            edit for edit in job.wants if within.edits and edit.file.startswith(folder) and not edit.phase
        ]
        groups = self._groups(within.trial, job)
        try:
            locked = self.stand_ins.source(
                self.book.stand_in[0].base, job.component, within.version, (within.place,)
            )
        except (FetchError, NetworkError) as error:
            reason = f"no source of {within.folder} can be had here: {answers_line(error)}"
            job.left += [untried(trial, reason) for _, trials in groups.values() for trial in trials]
            job.reason = job.reason or reason
            return
        moved = [(edit, edit.model_copy(update={"file": edit.file.removeprefix(folder)})) for edit in ours]
        self._add(job, f"{job.component.name}-{within.folder.rpartition('/')[2]}", locked, moved, groups)

    def _add(
        self,
        job: ComponentJob,
        name: str,
        locked: LockedComponent,
        edits: Sequence[tuple[Edit, Edit]],
        groups: Groups,
    ) -> None:
        """A tree, and its trials on each stand-in."""
        source = source_step(name, locked)
        pairs = [(written, edit.for_targets(self.row.lock.request.gpu)) for written, edit in edits]
        refused = self.without.get(source.key, ())
        applied = [edit for _, edit in pairs if edit not in refused]
        own = job.source is not None and locked is job.source.locked
        version = locked.version if own else job.locked.version
        tree = tree_step(name, locked, source, applied, version)
        job.trees.append(Tree(step=tree, source=locked, edits=tuple(pairs)))
        job.steps += [source, tree]
        lock = self.row.lock
        for group, (ready, trials) in groups.items():
            around = base_of(lock, self.row.catalog)[0].env if ready.stand_in.rocm else ready.env
            env = environment_of(job.component, job.locked, lock, around, present(lock))
            step = trial_step(f"{name}-{group}", job.component, ready, tree, self._trial_request(trials), env)
            job.steps += [*ready.steps, step]
            job.trials[step.name] = ready, trials

    def _as_built(self, job: ComponentJob, groups: Groups) -> None:
        """In the tree of a stand-in's own plan, as it is built there."""
        for group, (ready, trials) in groups.items():
            # as it is on the stand-in's base: a release may have other settings there
            component = ready.catalog.component(job.component.name)
            built = ready.built(component.name)
            if built is None or ready.lock is None:
                job.left += [untried(trial, f"{group} does not build {component.name}") for trial in trials]
                continue
            locked = next(
                candidate for candidate in ready.lock.components if candidate.name == component.name
            )
            exact = locked.version == job.locked.version
            note = f"{component.name} {locked.version} stands in for {job.locked.version}"
            job.source = ExactSource(locked=locked, instead="" if exact else note)
            prior_steps = ready.below([item.key for item in built.inputs])
            source = next(item.key for item in built.inputs if item.name == "src")
            tree = next(candidate for candidate in prior_steps if candidate.key == source)
            stand_in_edits = [
                edit
                for step in prior_steps
                if isinstance(step.action, TreeAction)
                for edit in step.action.edits
            ]
            edits = [
                (edit, edit)
                for edit in self._edits(component, locked.version, locked.kind)
                if edit.for_targets(ready.lock.request.gpu) in stand_in_edits
            ]
            job.trees.append(Tree(step=tree, source=locked, edits=tuple(edits)))
            env = environment_of(component, locked, ready.lock, ready.env, targets=self.row.gpu)
            name = f"{component.name}-{group}"
            step = built_trial_step(name, component, ready, built, tree, self._trial_request(trials), env)
            job.steps += [*prior_steps, *ready.steps, step]
            job.trials[step.name] = ready, trials

    def _trial_request(self, trials: tuple[Trial, ...]) -> TrialRequest:
        return TrialRequest(trials=trials, gpu=self.row.gpu, seed=self.row.seed, every=self.row.every)


def _of_wheels(component: Component, locked: LockedComponent) -> ComponentJob:
    """Wheels are fetched, where the lock has their hashes; what is in them is read afterwards."""
    tally = unlocked(locked)
    steps = [] if tally else [source_step(component.name, locked)]
    return ComponentJob(
        component=component, locked=locked, wants=(), steps=steps, left=[tally] if tally else []
    )


def _build(reason: str) -> TrialTally:
    """All of a build, of which nothing can be tried."""
    return TrialTally(part="configure", name="build", tried=0, all=1, reasons=(reason,))
