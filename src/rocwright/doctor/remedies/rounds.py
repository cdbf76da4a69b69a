"""Build, look, mend, build again: until it is built, or nothing is left to try."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rocbase.errors import CompileError, ExplainedError, FailureClass, InputError
from rocwright.catalog.issue import Issue
from rocwright.catalog.load import Catalog
from rocwright.catalog.remedy import AddPackages, CompilerFlags, RemedyAction, SetVariables, texts_of
from rocwright.diagnosis.explain import first_line, issue_of, named_by, named_in
from rocwright.diagnosis.missing import HEADER
from rocwright.doctor.remedies.aside import LockSnapshots
from rocwright.doctor.remedies.choose import Case, RemedyOffer, added, choose
from rocwright.doctor.remedies.words import does
from rocwright.execution.outcome import Built
from rocwright.model.steps import Plan
from rocwright.plan.resolve.lock import relocks
from rocwright.plan.resolve.model import Lock, Remedy

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+=_.-]{0,79}")

# The packages of a base that have a header, the likeliest first. May raise NetworkError.
PackagesWith = Callable[[str], tuple[str, ...]]


def none_known(header: str) -> tuple[str, ...]:
    """Of no header it is known which package has it."""
    return ()


def fitted(
    issue: Issue, error: ExplainedError, lock: Lock, catalog: Catalog, packages_with: PackagesWith
) -> Issue:
    """A family with its actions for what this failure names: its name filled into variables and flags, and,
    of a header that is missing, an action more for each name of the catalog that brings it."""
    if issue.filled is None or not (issue.filled.indexed or any(map(_places, issue.remedies))):
        return issue
    named = named_in(error, issue.name)
    actions = [filled for action in issue.remedies if (filled := _filled(action, named)) is not None]
    header = named.get(HEADER, "") if issue.filled.indexed else ""
    packages = packages_with(header) if header else ()
    names = [name for package in packages for name in _names(package, lock, catalog)]
    actions += [AddPackages(kind="packages", names=(name,)) for name in dict.fromkeys(names)]
    return issue.model_copy(update={"remedies": tuple(actions)})


def _places(action: RemedyAction) -> bool:
    return any("{" in text for text in texts_of(action))


def _filled(action: RemedyAction, named: Mapping[str, str]) -> RemedyAction | None:
    """An action with what a line names in its places; None where that is no plain name, or not known.

    A line is not to be trusted: a name has letters, digits and few other signs, and begins no option.
    """
    if not _places(action):
        return action
    plain = {name: text for name, text in named.items() if _NAME.fullmatch(text)}
    try:
        match action:
            case SetVariables():
                variables = {name: text.format_map(plain) for name, text in action.variables.items()}
                return action.model_copy(update={"variables": variables})
            case CompilerFlags():
                return action.model_copy(
                    update={"flags": tuple(flag.format_map(plain) for flag in action.flags)}
                )
    except KeyError:
        return None
    return action


def _names(package: str, lock: Lock, catalog: Catalog) -> list[str]:
    """The catalog's names for a package of the lock's base, those for the fewest packages first."""
    base = catalog.base(lock.request.base)[0]
    candidates: list[tuple[int, str]] = []
    for name in {*catalog.system.packages, *base.packages}:
        try:
            packages = catalog.system_packages(base, (name,))
        except InputError:
            continue
        if package in packages:
            candidates.append((len(packages), name))
    return [name for _, name in sorted(candidates)]


# How often a build is begun anew with another remedy, at most.
ROUNDS = 24

Planner = Callable[[Lock], Plan]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealContext:
    """What healing needs of the rest: a plan of a lock, a build of it, the lock made anew as its remedies
    want it, the lock written, locks put aside, words said, and which packages have a header."""

    catalog: Catalog
    plan: Planner
    build: Callable[[Lock], Built]
    relock: Callable[[Lock], Lock]
    save: Callable[[Lock], None]
    aside: LockSnapshots
    say: Callable[[str], None]
    packages_with: PackagesWith = none_known


def healed(locked: Lock, world: HealContext) -> tuple[Lock, Built]:
    """Build; where a step fails with a known issue, try its actions one after the other.

    The lock is written before each build and after it, so that a kill loses nothing. Gives the lock as it is
    now, and the last build.
    """
    first: dict[str, ExplainedError] = {}
    for _ in range(ROUNDS):
        built = world.build(locked)
        outcome = went(world.plan(locked), built)
        judged = _judged(locked, outcome, world)
        if judged != locked:
            world.save(judged)
            for name in {remedy.undo for remedy in locked.remedies} - {
                remedy.undo for remedy in judged.remedies
            }:
                world.aside.drop(name)
        built = replace(built, failures=as_without(locked, judged, outcome, first))
        first = dict(built.failures)
        tried = _with_next(judged, built, world)
        if tried != judged:
            world.save(tried)
        locked = tried
        if not any(remedy.outcome == "trial" and remedy not in judged.remedies for remedy in tried.remedies):
            break
    return locked, built


def went(plan: Plan, built: Built) -> Went:
    """How the steps of a plan went, by the build's own account."""
    outcomes = {step.name: step.outcome for step in built.run.steps}
    return Went(
        plan=plan,
        failed=dict(built.failures),
        skipped=frozenset(name for name, outcome in outcomes.items() if outcome == "skipped"),
    )


def as_without(
    old_lock: Lock, new_lock: Lock, outcome: Went, first: Mapping[str, ExplainedError]
) -> tuple[tuple[str, ExplainedError], ...]:
    """The failures as they stand now that remedies were taken out: where one broke a step before that which
    it was for, the failure (of `first`) that it did not mend is in force again."""
    failures = dict(outcome.failed)
    components = {step.name: step.component for step in outcome.plan.steps}
    for old, new in zip(old_lock.remedies, new_lock.remedies, strict=True):
        if old.in_force and not new.in_force and old.step in outcome.skipped:
            broken = [name for name in failures if components.get(name) == old.component]
            failures = {name: error for name, error in failures.items() if name not in broken}
            failures[old.step] = first.get(old.step) or _again(old)
    return tuple(failures.items())


def _again(remedy: Remedy) -> ExplainedError:
    """The failure that a remedy was for, as far as its trail tells."""
    error = CompileError(
        f"{remedy.step} failed the same way as before",
        cause="its remedy was removed again, because with it an earlier step failed",
        next_step="rocwright heal --explain shows what was tried",
        detail=remedy.failed,
    )
    error.issue, error.known_issue = remedy.issue, remedy.why
    return error


def offers(
    lock: Lock,
    built: Built,
    catalog: Catalog,
    planner: Planner,
    silent: str = "",
    packages_with: PackagesWith = none_known,
) -> list[tuple[str, RemedyOffer]]:
    """For each failed step whose known issue names actions: what can be tried, or why nothing.

    `silent` says why nothing outside can be asked, where that is so. Raises what `packages_with` raises.
    """
    plan = planner(lock)
    steps = {step.name: step for step in plan.steps}
    runs = {run.name: run for run in built.run.steps}
    choices = []
    for name, error in built.failures:
        issue = issue_of(error)
        if issue is not None:
            issue = fitted(issue, error, lock, catalog, packages_with)
        # a failure may say by itself why nothing can be done
        if issue is not None and issue.remedies and name in steps and not error.remedy_unavailable:
            case = Case(
                issue=issue,
                step=steps[name],
                failed=first_line(error),
                lock=lock,
                plan=plan,
                jobs=runs[name].jobs if name in runs else 0,
                memory=(runs[name].memory or 0) if name in runs else 0,
                silent=silent,
            )
            choices.append((name, choose(case, catalog, planner, _timestamp())))
    return choices


def _judged(locked: Lock, outcome: Went, world: HealContext) -> Lock:
    """The lock with what the build has shown; as it was before, where a remedy made it anew for nothing."""
    judged = settled(locked, outcome)
    for old, new in zip(locked.remedies, judged.remedies, strict=True):
        if old == new:
            continue
        world.say(f"heal: {new.issue}: {'kept' if new.in_force else 'removed again'}, {new.told}")
        if not new.in_force and relocks(new.action):
            snapshot = world.aside.get(new.undo)
            if snapshot is not None and snapshot.request == judged.request:
                judged = snapshot.model_copy(update={"remedies": judged.remedies})
            else:
                judged = world.relock(judged)
    remedies = (
        remedy.model_copy(update={"undo": ""}) if remedy.outcome != "trial" else remedy
        for remedy in judged.remedies
    )
    return judged.model_copy(update={"remedies": tuple(remedies)})


def _with_next(lock: Lock, built: Built, world: HealContext) -> Lock:
    """The lock with one remedy more for each failed step, where there is one to try.

    What makes the lock anew is tried alone, so that it can be undone.
    """
    silent, anew = "", False
    looked = _quietly(world)
    waiting = [name for name, _ in built.failures]
    while waiting:
        name = waiting.pop(0)
        choices = dict(offers(lock, built, world.catalog, world.plan, silent, looked))
        remedy = choices[name].remedy if name in choices else None
        if remedy is None or (anew and relocks(remedy.action)):
            continue
        world.say(f"heal: {remedy.step}: {remedy.issue}, {remedy.why}")
        world.say(f"heal: {does(remedy.action, remedy.component)}, and builds again")
        try:
            lock = _on_trial(lock, remedy, world)
            anew = anew or relocks(remedy.action)
        except ExplainedError as failure:
            world.say(f"heal: {remedy.issue}: cannot be applied: {failure.message} ({failure.cause})")
            if failure.failure is FailureClass.NETWORK:
                silent = f"it needs the network, and {failure.message}"
            else:
                message = f"no lock with it can be made: {failure.message}"
                lock = added(lock, remedy.model_copy(update={"outcome": "useless", "told": message}))
            waiting.insert(0, name)
    return lock


def _quietly(world: HealContext) -> PackagesWith:
    """Which packages have a header, () also where that cannot be asked; each is asked once."""
    cached: dict[str, tuple[str, ...]] = {}

    def packages_with(header: str) -> tuple[str, ...]:
        if header not in cached:
            cached[header] = ()
            try:
                cached[header] = world.packages_with(header)
            except ExplainedError as failure:
                world.say(f"heal: which package has {header} is not known: {failure.message}")
        return cached[header]

    return packages_with


def _on_trial(lock: Lock, remedy: Remedy, world: HealContext) -> Lock:
    """The lock with a remedy on trial. Raises what making a lock raises."""
    anew = relocks(remedy.action)
    trial = world.relock(added(lock, remedy)) if anew else added(lock, remedy)
    trail = {
        "after": next((step.key for step in world.plan(trial).steps if step.name == remedy.step), ""),
        "undo": world.aside.put(lock) if anew else "",
    }
    *earlier, last = trial.remedies
    return trial.model_copy(update={"remedies": (*earlier, last.model_copy(update=trail))})


def _timestamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# Failures of which no remedy of a build can be the reason: they leave open whether it helped.
MACHINES = frozenset(
    {
        FailureClass.OUT_OF_DISK,
        FailureClass.DISK,
        FailureClass.NETWORK,
        FailureClass.SANDBOX,
        FailureClass.TIMEOUT,
        FailureClass.INTERNAL,
        FailureClass.INTERRUPTED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Went:
    """How the steps of a plan went: those that `failed`, and those that were not reached (`skipped`)."""

    plan: Plan
    failed: Mapping[str, ExplainedError]
    skipped: frozenset[str] = frozenset()


def settled(lock: Lock, went: Went) -> Lock:
    """The lock with what a build has shown of its remedies on trial."""
    return lock.model_copy(update={"remedies": tuple(_settled(remedy, went) for remedy in lock.remedies)})


def _settled(remedy: Remedy, went: Went) -> Remedy:
    if remedy.outcome != "trial":
        return remedy
    verdict = _verdict(remedy, went)
    if verdict is None:
        return remedy
    outcome, message = verdict
    return remedy.model_copy(update={"outcome": outcome, "told": message})


def _verdict(remedy: Remedy, went: Went) -> tuple[str, str] | None:
    """What became of it and how that was seen; None where the build tells nothing of it."""
    error = went.failed.get(remedy.step)
    if error is not None:
        if error.failure in MACHINES:
            return None
        issue = issue_of(error)
        if issue is not None and issue.name == remedy.issue:
            subject = _another(remedy, error)
            if subject:
                return "helped", f"{remedy.step} got past {remedy.issue}, then failed with it for {subject}"
            return "useless", f"{remedy.step} failed in the same way"
        then = issue.name if issue is not None else f"an unknown failure: {first_line(error)}"
        return "helped", f"{remedy.step} got past {remedy.issue}, then failed with {then}"
    if remedy.step in went.skipped:
        return _before_it(remedy, went)
    names = {step.name for step in went.plan.steps}
    if remedy.step not in names:
        return "useless", f"the plan no longer has the step {remedy.step}"
    return "helped", f"{remedy.step} was built"


def _another(remedy: Remedy, error: ExplainedError) -> str:
    """What a failure of the same family is of, where it is another thing than before; else ""."""
    previous, current = named_by(remedy.failed, remedy.issue), named_in(error, remedy.issue)
    return ", ".join(current.values()) if previous and current and previous != current else ""


def _before_it(remedy: Remedy, went: Went) -> tuple[str, str] | None:
    """Whether the remedy itself broke a step before the one that it is for."""
    components = {step.name: step.component for step in went.plan.steps}
    for name, error in went.failed.items():
        if components.get(name) == remedy.component and error.failure not in MACHINES:
            return "useless", f"{name} failed with it: {error.message}"
    return None
