"""How long steps and whole builds can be expected to take, and how well that is known."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Literal

from rocbase.errors import ExplainedError
from rocbase.model import Frozen
from rocwright.home import Home
from rocwright.model.steps import Step
from rocwright.plan.decide import Decision
from rocwright.project import Project
from rocwright.records.opening import read_records
from rocwright.records.place import there
from rocwright.records.plain import open_plain

# Recipes say what a step took on a two-core machine.
RECIPE_JOBS = 2

# A step of which the compiler cache had more than this part says little about the next time.
WARM = 0.5

# Seconds below which a step says nothing of how fast a machine is.
SHORTEST = 1.0

Source = Literal["built here", "recipe, by this machine", "recipe", ""]


class Expected(Frozen):
    """What a step can be expected to take: `work` is wall seconds times jobs, 0 where nothing tells.

    `counted` is how many things ninja or make counted in all the last time.
    """

    work: float = 0
    source: Source = ""
    counted: int = 0

    def seconds(self, jobs: int) -> float:
        """Wall seconds with so many jobs, 0 where nothing tells."""
        return self.work / max(jobs, 1)


def expect(
    steps: Iterable[Step], past: Iterable[Took], recipes: Mapping[str, float], stack: str = ""
) -> dict[str, Expected]:
    """By the name of each step: as it took before on this machine, in this `stack` or another; else as its
    recipe says, at this machine's own pace; else as the recipe says; else nothing.

    `recipes` are the seconds of every component's recipe, by which this machine's pace is known.
    """
    history = list(past)
    pace = machine_pace(history, recipes)
    return {step.name: _expect(step, history, pace, stack) for step in steps}


def _expect(step: Step, history: Sequence[Took], pace: float | None, stack: str) -> Expected:
    matching = [entry for entry in history if entry.name == step.name]
    if matching:
        # each next one only decides where the ones before are equal; the newest comes first
        best = min(matching, key=lambda entry: (entry.cached > WARM, entry.stack != stack))
        return Expected(work=best.seconds * best.jobs, source="built here", counted=best.counted)
    if not step.resources.seconds:
        return Expected()
    work = step.resources.seconds * (min(RECIPE_JOBS, step.resources.cores) if compiles(step) else 1)
    if pace is None or not compiles(step):
        return Expected(work=work, source="recipe")
    return Expected(work=work * pace, source="recipe, by this machine")


def machine_pace(history: Iterable[Took], recipes: Mapping[str, float]) -> float | None:
    """How many times what its recipe says a step takes here: the median over what was built, else None."""
    ratios = [
        entry.seconds * entry.jobs / (recipes[entry.name] * RECIPE_JOBS)
        for entry in history
        if recipes.get(entry.name, 0) >= SHORTEST and entry.cached <= WARM
    ]
    return median(ratios) if ratios else None


def compiles(step: Step) -> bool:
    """Whether a step runs a recipe's commands, with as many jobs as there are."""
    return step.kind == "run"


def most_jobs(step: Step, jobs: int) -> int:
    """How many of `jobs` a step can use."""
    return max(1, min(step.resources.cores, jobs)) if compiles(step) else 1


def longest_first(
    steps: Mapping[str, Step],
    expected: Mapping[str, Expected],
    jobs: int,
    shards: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Step]:
    """Steps by their keys, in the order in which they should begin: first those with the longest way to the
    end of the build, by what the steps on it are expected to take; where nothing tells, as they came.

    `steps` come in an order in which each follows what it needs, and do so afterwards. The shards of a step,
    by its key, begin before it.
    """
    ways: dict[str, float] = {}
    downstream: defaultdict[str, float] = defaultdict(float)
    for step in reversed([*steps.values()]):
        took = expected.get(step.name, Expected()).seconds(most_jobs(step, jobs))
        ways[step.key] = length = downstream[step.key] + took
        for key in (*(item.key for item in step.inputs), *(shards or {}).get(step.key, ())):
            downstream[key] = max(downstream[key], length)
    return {key: steps[key] for key in sorted(steps, key=lambda key: -ways[key])}


class Left(Frozen):
    """What is left of a build: wall seconds as far as anything tells, and the steps of which nothing does."""

    seconds: float = 0
    unknown: tuple[str, ...] = ()


def whole(steps: Sequence[Step], remaining: Mapping[str, float | None], jobs: int) -> Left:
    """How long these steps take together: `remaining` are the seconds of each by key, None where
    nothing tells.

    No less than the longest way through what needs what, and no less than all the work on `jobs` cores.
    `steps` come in an order in which each follows what it needs.
    """
    ways: dict[str, float] = {}
    for step in steps:
        upstream = max((ways.get(item.key, 0) for item in step.inputs), default=0)
        ways[step.key] = upstream + (remaining.get(step.key) or 0)
    work = sum((remaining.get(step.key) or 0) * most_jobs(step, jobs) for step in steps if compiles(step))
    return Left(
        seconds=max(max(ways.values(), default=0), work / max(jobs, 1)),
        unknown=tuple(step.name for step in steps if remaining.get(step.key) is None),
    )


def expected(project: Project, decisions: Sequence[Decision]) -> dict[str, Expected]:
    """How long each step of a plan should take, by this machine's history and the recipes."""

    recipes = {name: component.resources.seconds for name, component in project.catalog.components.items()}
    steps = [decision.step for decision in decisions]
    return expect(steps, took(project.home), recipes, project.request.stack)


class Took(Frozen):
    """A step that was built: in wall seconds, with so many jobs.

    `cached` is the part of the compilations that the compiler cache had, 0 to 1; `counted` how many things
    ninja or make counted in all, 0 where they counted nothing.
    """

    name: str
    stack: str
    seconds: float
    jobs: int = 1
    cached: float = 0
    counted: int = 0


def took(home: Home) -> Iterator[Took]:
    """Every step that was built on this machine, newest first: each of each stack as it was last built."""
    # a build does not fail for its history
    with contextlib.suppress(ExplainedError):
        if there(home):
            with contextlib.closing(open_plain(home) or read_records(home)) as records:
                past = records.times()
            for step in past:
                yield Took(
                    name=step.name,
                    stack=step.stack,
                    seconds=step.seconds,
                    jobs=max(step.jobs, 1),
                    cached=step.cached,
                    counted=step.counted,
                )
