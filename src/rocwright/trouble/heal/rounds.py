"""Build, look, mend, build again: until it is built, or nothing is left to try."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rocwright.catalog.issue import the_issues
from rocwright.catalog.load import Catalog
from rocwright.errors import RocwrightError
from rocwright.plan.model import Plan
from rocwright.resolve.model import Lock, Remedy
from rocwright.trouble.heal.choose import Case, Offer, added, choose
from rocwright.trouble.heal.settle import Went, settled
from rocwright.trouble.heal.words import does

if TYPE_CHECKING:
    from rocwright.flow import Built

ROUNDS = 24
"""How often a build is begun anew with another remedy, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What healing needs of the rest: a plan of a lock, a build of it, the lock written, words said."""

    catalog: Catalog
    plan: Callable[[Lock], Plan]
    build: Callable[[Lock], Built]
    save: Callable[[Lock], None]
    say: Callable[[str], None]


def healed(locked: Lock, world: World) -> tuple[Lock, Built]:
    """Build; where a step fails with a known issue, try its actions one after the other.

    The lock is written before each build and after it, so that a kill loses nothing. Gives the lock as it is
    now, and the last build.
    """
    for _ in range(ROUNDS):
        built = world.build(locked)
        plan = world.plan(locked)
        judged = settled(locked, went(plan, built))
        if judged != locked:
            _tell_verdicts(locked, judged, world)
            world.save(judged)
        locked = judged
        offered = offers(locked, built.failures, world.catalog, world.plan)
        tried = [one.remedy for _, one in offered if one.remedy]
        if not tried:
            break
        for remedy in tried:
            locked = _taken(locked, remedy, world)
        world.save(locked)
    return locked, built


def went(plan: Plan, built: Built) -> Went:
    """How the steps of a plan went, by the build's own account."""
    outcomes = {one.name: one.outcome for one in built.run.steps}
    return Went(
        plan=plan,
        failed=dict(built.failures),
        skipped=frozenset(name for name, outcome in outcomes.items() if outcome == "skipped"),
    )


def offers(
    lock: Lock,
    failures: Iterable[tuple[str, RocwrightError]],
    catalog: Catalog,
    planner: Callable[[Lock], Plan],
) -> list[tuple[str, Offer]]:
    """For each failed step whose known issue names actions: what can be tried, or why nothing."""
    plan = planner(lock)
    steps = {one.name: one for one in plan.steps}
    found = []
    for name, error in failures:
        issue = the_issues()[0].get(error.issue) if error.issue else None
        if issue is not None and issue.mend and name in steps:
            case = Case(issue=issue, step=steps[name], failed=_line(error), lock=lock, plan=plan)
            found.append((name, choose(case, catalog, planner, _now())))
    return found


def _taken(lock: Lock, remedy: Remedy, world: World) -> Lock:
    with_it = added(lock, remedy)
    after = next((one.key for one in world.plan(with_it).steps if one.name == remedy.step), "")
    world.say(
        f"heal: {remedy.issue}: {does(remedy.action, remedy.component)}, and builds {remedy.step} again"
    )
    return added(lock, remedy.model_copy(update={"after": after}))


def _tell_verdicts(before: Lock, after: Lock, world: World) -> None:
    for was, now in zip(before.remedies, after.remedies, strict=True):
        if was != now:
            kept = "kept" if now.in_force else "taken out again"
            world.say(f"heal: {now.issue}: {kept}, {now.told}")


def _line(error: RocwrightError) -> str:
    lines = [line.strip() for line in error.detail.splitlines() if line.strip()]
    return lines[0] if lines else error.what


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
