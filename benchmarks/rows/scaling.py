"""All rows of all stacks on 1, 4, 16 and 64 machines: the scheduler of a build on a simulated clock.

`python -m benchmarks.rows.scaling` draws .out/scaling.svg, and prints the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.documented import took
from benchmarks.draw_scaling import Panel, draw
from benchmarks.results import Measured
from benchmarks.simulated import Silent, SimulatedFarm
from rocwheel.folders.temporary import temporary_folder
from rocwheel.units import count, duration
from rocwright.catalog.load import builtin_catalog
from rocwright.execution.estimate import RECIPE_JOBS, Expected, compiles, expect
from rocwright.execution.executor import Task
from rocwright.execution.options import Options
from rocwright.execution.scheduler import schedule
from rocwright.execution.shards import shards_of
from rocwright.model.steps import Plan, Step
from rocwright.plan.decide import decide
from rocwright.plan.make import make_plan
from rocwright.resolve.shipped import request_of, rows, shipped_lock
from rocwright.store.local import LocalStore

MACHINES = (1, 4, 16, 64)
CORES = RECIPE_JOBS
"""Of each machine: the times on record are those of one with two."""

CONFIGURES, FINISHES = 0.03, 0.05
"""The parts of a split step's work that every shard does too, and that no shard does: assumed."""

LEAST = 0.85
FROM_SOURCE = "therock-source"
"""The provider whose rows build ROCm itself: a step of days that cannot be split, with a guessed time."""

PICTURE = Path(__file__).parents[2] / ".out" / "scaling.svg"

FARM = "dask"
"""The executor by whose rules steps are split: as many shards as there are machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """The steps of all rows, each once, in an order in which each follows what it needs; what each should
    take, by its name; and in how many rows and plans' steps they occur."""

    steps: tuple[Step, ...]
    expected: Mapping[str, Expected]
    rows: int
    planned: int

    @property
    def title(self) -> str:
        """In words."""
        return f"{self.rows} rows, {len(self.steps)} steps"

    @property
    def source(self) -> str:
        """Where the times come from, in words."""
        there = [one for one in self.steps if self.expected[one.name].source == "built here"]
        rest = [one for one in self.steps if one not in there]
        return (
            "Times go by a step's name, whatever its version, GPU and base, and the scheduler knows them: "
            f"as recorded, those of {self._told(there)}; as recipes say, some of which guess, at the "
            f"pace of recorded steps, those of {self._told(rest)}; machines of {CORES} cores that lack "
            "nothing, files in no time"
        )

    def _told(self, steps: Sequence[Step]) -> str:
        work = sum(map(self.work, steps)) / CORES
        return f"{len(steps)} steps ({sum(map(compiles, steps))} that compile, in all {duration(work)})"

    def work(self, step: Step) -> float:
        """Seconds of one core."""
        return self.expected[step.name].work


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """How a build of the matrix went: seconds of one core that all steps took, and in seconds the longest
    way, and the time until all was done; and how many steps were shards."""

    machines: int
    split: bool
    work: float
    path: float
    took: float
    shards: int

    @property
    def bound(self) -> float:
        """What no order of steps can do better."""
        return max(self.work / (self.machines * CORES), self.path)

    @property
    def efficiency(self) -> float:
        return self.bound / self.took


def measure(runs: int | None) -> Sequence[Measured]:
    """A row for each number of machines, without and with shards."""
    matrices = [make_matrix(), make_matrix(without=FROM_SOURCE)]
    found = [all_of(matrix) for matrix in matrices]
    return [_measured(pair, matrices) for pair in zip(*found, strict=True)]


def all_of(matrix: Matrix) -> list[Simulated]:
    """Without shards and with them, on each number of machines."""
    return [
        simulate(matrix, machines, split=split)
        for split in (False, True)
        for machines in MACHINES
        if machines > 1 or not split
    ]


def _measured(pair: Sequence[Simulated], matrices: Sequence[Matrix]) -> Measured:
    one, split = pair[0], pair[0].split
    return Measured(
        name=f"scaling:{'shards:' if split else ''}{one.machines}",
        what=f"all rows of all stacks from nothing on {count(one.machines, 'machine')}"
        f"{', large steps in as many shards' if split else ''}, simulated: what no order can do better "
        "(all work shared out evenly, or the longest way through the steps) against what the scheduler does",
        values=[min(each.efficiency for each in pair)],
        least=LEAST,
        note="; ".join(
            f"{matrix.title}: {_hours(each)}, {each.efficiency:.3f}"
            for matrix, each in zip(matrices, pair, strict=True)
        )
        + f"; the lower figure counts. {matrices[0].source}"
        + (
            f"; assumed: every shard does {CONFIGURES:.0%} of the step's work too, and no shard the last "
            f"{FINISHES:.0%}; {', '.join(f'{each.shards:,}' for each in pair)} shards"
            if split
            else ""
        ),
    )


def _hours(one: Simulated) -> str:
    return f"{duration(one.took)}, at best {duration(one.bound)}"


def make_matrix(without: str = "") -> Matrix:
    """From the catalog and the locks that come with rocwright, without the rows of one provider."""
    catalog, past = builtin_catalog(), list(took())
    recipes = {name: one.resources.seconds for name, one in catalog.components.items()}
    steps: dict[str, Step] = {}
    expected: dict[str, Expected] = {}
    many = planned = 0
    for stack, row in rows(catalog):
        lock = shipped_lock(catalog, request_of(stack, row))
        if lock is None or (without and row.provider == without):
            continue
        plan = make_plan(lock, catalog)
        many, planned = many + 1, planned + len(plan.steps)
        told = expect(plan.steps, past, recipes, stack.name)
        for step in plan.steps:
            if step.key not in steps:
                # steps of several rows have one name, and other keys
                named = step.model_copy(update={"name": f"{step.name}-{step.key[:12]}"})
                steps[step.key], expected[named.name] = named, told[step.name]
    return Matrix(steps=tuple(steps.values()), expected=expected, rows=many, planned=planned)


def simulate(matrix: Matrix, machines: int, *, split: bool) -> Simulated:
    """Build it all, from nothing."""
    # the step of each shard that there may be
    whole = {shard.key: step for step in matrix.steps for shard in shards_of(step, machines if split else 1)}

    def work(task: Task) -> float:
        step = task.step
        if step.key in whole:
            return matrix.work(whole[step.key]) * (CONFIGURES + (1 - CONFIGURES - FINISHES) / machines)
        return matrix.work(step) * (CONFIGURES + FINISHES if task.shards else 1)

    farm = SimulatedFarm(machines, CORES, work)
    plan = Plan(steps=matrix.steps, artifacts=tuple(step.name for step in matrix.steps))
    with temporary_folder("scaling") as folder:
        store = LocalStore(Path(folder) / "store")
        told = schedule(
            decide(plan, store),
            store,
            farm,
            Options(jobs=CORES, executor=FARM, shards=None if split else 1),
            Path(folder) / "logs",
            matrix.expected,
            Silent(),
        )
    assert not told.failures, told.failures
    assert len(told.steps) == len(farm.begun) >= len(matrix.steps)
    return Simulated(
        machines=machines,
        split=split,
        work=sum(work for _, work in farm.begun),
        path=farm.longest_way(),
        took=farm.now,
        shards=len(farm.begun) - len(matrix.steps),
    )


def main() -> None:
    """Draw the picture, and print the table."""
    matrices = [make_matrix(), make_matrix(without=FROM_SOURCE)]
    found = [all_of(matrix) for matrix in matrices]
    titles = (f"All {matrices[0].rows} rows", f"Without those that build ROCm itself: {matrices[1].rows}")
    panels = [
        Panel(
            title=title,
            curves={
                name: [
                    (one.machines, one.took / 3600) for one in all_ if one.split == split or one.machines == 1
                ]
                for name, split in (("whole", False), ("split", True))
            },
            work=all_[0].work / CORES / 3600,
        )
        for title, all_ in zip(titles, found, strict=True)
    ]
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(panels))
    print(table(titles, found))


def table(titles: Sequence[str], found: Sequence[Sequence[Simulated]]) -> str:
    """As Markdown."""
    lines = [
        "| machines | shards | " + " | ".join(f"{title} | at best | efficiency" for title in titles) + " |",
        "| ---: | --- |" + " ---: |" * 3 * len(titles),
    ]
    for pair in zip(*found, strict=True):
        cells = [f"{duration(one.took)} | {duration(one.bound)} | {one.efficiency:.2f}" for one in pair]
        split = "as many" if pair[0].split else "none"
        lines.append(f"| {pair[0].machines} | {split} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
