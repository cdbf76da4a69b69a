"""Build, look, mend, build again: until it is built, or nothing is left to try."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rocbase.errors import CompileError, ExplainedError, FailureClass
from rocwright.catalog.load import Catalog
from rocwright.diagnosis.explain import first_line, issue_of
from rocwright.execution.options import Built
from rocwright.model.steps import Plan
from rocwright.remedies.aside import LockSnapshots
from rocwright.remedies.bring import PackagesWith, fitted, none_known
from rocwright.remedies.choose import Case, RemedyOffer, added, choose
from rocwright.remedies.settle import Went, settled
from rocwright.remedies.words import does
from rocwright.resolve.lock import relocks
from rocwright.resolve.model import Lock, Remedy

ROUNDS = 24
"""How often a build is begun anew with another remedy, at most."""

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
        told = went(world.plan(locked), built)
        judged = _judged(locked, told, world)
        if judged != locked:
            world.save(judged)
            for name in {one.undo for one in locked.remedies} - {one.undo for one in judged.remedies}:
                world.aside.drop(name)
        built = replace(built, failures=as_without(locked, judged, told, first))
        first = dict(built.failures)
        tried = _with_next(judged, built, world)
        if tried != judged:
            world.save(tried)
        locked = tried
        if not any(one.outcome == "trial" and one not in judged.remedies for one in tried.remedies):
            break
    return locked, built


def went(plan: Plan, built: Built) -> Went:
    """How the steps of a plan went, by the build's own account."""
    outcomes = {one.name: one.outcome for one in built.run.steps}
    return Went(
        plan=plan,
        failed=dict(built.failures),
        skipped=frozenset(name for name, outcome in outcomes.items() if outcome == "skipped"),
    )


def as_without(
    before: Lock, after: Lock, told: Went, first: Mapping[str, ExplainedError]
) -> tuple[tuple[str, ExplainedError], ...]:
    """The failures as they stand now that remedies were taken out: where one broke a step before that which
    it was for, the failure (of `first`) that it did not mend is in force again."""
    failures = dict(told.failed)
    components = {one.name: one.component for one in told.plan.steps}
    for was, now in zip(before.remedies, after.remedies, strict=True):
        if was.in_force and not now.in_force and was.step in told.skipped:
            broken = [name for name in failures if components.get(name) == was.component]
            failures = {name: error for name, error in failures.items() if name not in broken}
            failures[was.step] = first.get(was.step) or _again(was)
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
    steps = {one.name: one for one in plan.steps}
    runs = {one.name: one for one in built.run.steps}
    found = []
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
            found.append((name, choose(case, catalog, planner, _now())))
    return found


def _judged(locked: Lock, told: Went, world: HealContext) -> Lock:
    """The lock with what the build has shown; as it was before, where a remedy made it anew for nothing."""
    judged = settled(locked, told)
    for was, now in zip(locked.remedies, judged.remedies, strict=True):
        if was == now:
            continue
        world.say(f"heal: {now.issue}: {'kept' if now.in_force else 'removed again'}, {now.told}")
        if not now.in_force and relocks(now.action):
            before = world.aside.get(now.undo)
            if before is not None and before.request == judged.request:
                judged = before.model_copy(update={"remedies": judged.remedies})
            else:
                judged = world.relock(judged)
    done = (one.model_copy(update={"undo": ""}) if one.outcome != "trial" else one for one in judged.remedies)
    return judged.model_copy(update={"remedies": tuple(done)})


def _with_next(lock: Lock, built: Built, world: HealContext) -> Lock:
    """The lock with one remedy more for each failed step, where there is one to try.

    What makes the lock anew is tried alone, so that it can be undone.
    """
    silent, anew = "", False
    looked = _quietly(world)
    waiting = [name for name, _ in built.failures]
    while waiting:
        name = waiting.pop(0)
        found = dict(offers(lock, built, world.catalog, world.plan, silent, looked))
        remedy = found[name].remedy if name in found else None
        if remedy is None or (anew and relocks(remedy.action)):
            continue
        world.say(f"heal: {remedy.step}: {remedy.issue}, {remedy.why}")
        world.say(f"heal: {does(remedy.action, remedy.component)}, and builds again")
        try:
            lock = _taken(lock, remedy, world)
            anew = anew or relocks(remedy.action)
        except ExplainedError as failure:
            world.say(f"heal: {remedy.issue}: cannot be applied: {failure.message} ({failure.cause})")
            if failure.failure is FailureClass.NETWORK:
                silent = f"it needs the network, and {failure.message}"
            else:
                told = f"no lock with it can be made: {failure.message}"
                lock = added(lock, remedy.model_copy(update={"outcome": "useless", "told": told}))
            waiting.insert(0, name)
    return lock


def _quietly(world: HealContext) -> PackagesWith:
    """Which packages have a header, () also where that cannot be asked; each is asked once."""
    known: dict[str, tuple[str, ...]] = {}

    def packages_with(header: str) -> tuple[str, ...]:
        if header not in known:
            known[header] = ()
            try:
                known[header] = world.packages_with(header)
            except ExplainedError as failure:
                world.say(f"heal: which package has {header} is not known: {failure.message}")
        return known[header]

    return packages_with


def _taken(lock: Lock, remedy: Remedy, world: HealContext) -> Lock:
    """The lock with a remedy on trial. Raises what making a lock raises."""
    anew = relocks(remedy.action)
    taken = world.relock(added(lock, remedy)) if anew else added(lock, remedy)
    trail = {
        "after": next((one.key for one in world.plan(taken).steps if one.name == remedy.step), ""),
        "undo": world.aside.put(lock) if anew else "",
    }
    *others, last = taken.remedies
    return taken.model_copy(update={"remedies": (*others, last.model_copy(update=trail))})


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
