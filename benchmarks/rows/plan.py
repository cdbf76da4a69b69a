"""A plan of 2,000 steps: keys, order, and the look-up of each in a store that has half of them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from samples.many_components import ENVIRONMENT, PACKAGES, lock_of_all, many_components

from benchmarks.measure import Took, processor, seconds, timed
from benchmarks.place import bench_home
from benchmarks.results import Measured
from rocwright.flow import planned
from rocwright.home import Home
from rocwright.model.steps import Plan
from rocwright.plan.decide import State, decide
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.model import Output, Record, Store

COMPONENTS = 666
# Three steps a component, two for the root file system.
STEPS = 3 * COMPONENTS + 2


def measure(runs: int | None) -> Sequence[Measured]:
    """Two rows: in this process from a lock, and a process of its own from a plan on disk."""
    folder = bench_home().path / "bench" / "plan"
    remove_tree(folder)
    try:
        return _measure(folder, runs or 11)
    finally:
        remove_tree(folder)


def _measure(folder: Path, runs: int) -> list[Measured]:
    catalog = many_components(COMPONENTS)
    lock = lock_of_all(catalog)
    project = Project(
        request=lock.request,
        lock_path=folder / "lock",
        output=folder / "out",
        home=Home(folder / "home"),
        catalog=catalog,
    )
    plan = make_plan(lock, catalog)
    assert len(plan.steps) == STEPS
    _record_half(project.store, plan, folder)
    project.last_plan.parent.mkdir(parents=True)
    project.last_plan.write_text(plan.model_dump_json(by_alias=True))
    inside: list[Took] = []
    for _ in range(runs + 1):
        begun, before = time.perf_counter(), time.process_time()
        _, decisions = planned(project, lock)
        inside.append(Took(time.perf_counter() - begun, time.process_time() - before))
        assert sum(one.state is State.RUN for one in decisions) >= COMPONENTS // 2
    making, deciding = _parts(project, lock, plan)
    log = folder / "log"
    argv: list[str | Path] = [
        sys.executable,
        "-m",
        "benchmarks.decide_alone",
        project.last_plan,
        project.home.store,
    ]
    outside = [timed(argv, log=log) for _ in range(runs + 1)]
    told = json.loads(log.read_text())
    what = f"a plan of {STEPS:,} steps, half of them in the store"
    return [
        Measured(
            name="plan",
            what=f"{what}: keys, order and look-up, from a lock",
            values=[one.wall for one in inside[1:]],
            unit="s",
            most=0.25,
            note=f"`flow.planned`: {seconds(making)} to make the plan with its keys, "
            f"{seconds(deciding)} to decide, the rest to read the plan built last; "
            f"processor time {processor(inside)}; "
            f"{PACKAGES} packages in the root, {ENVIRONMENT} variables a step",
        ),
        Measured(
            name="plan:process",
            what=f"{what}: a process of its own, from the plan's JSON",
            values=[one.wall for one in outside[1:]],
            unit="s",
            most=0.35,
            note=f"from the start of the interpreter to its end; imports {told['imports']:.2f} s, "
            f"reading {told['read']:.2f} s, deciding {told['decide']:.2f} s; "
            f"processor time {processor(outside)}",
        ),
    ]


def _parts(project: Project, lock: Lock, before: Plan) -> tuple[list[float], list[float]]:
    making, deciding = [], []
    for _ in range(5):
        begun = time.perf_counter()
        plan = make_plan(lock, project.catalog)
        middle = time.perf_counter()
        decide(plan, project.store, before)
        making.append(middle - begun)
        deciding.append(time.perf_counter() - middle)
    return making, deciding


def _record_half(store: Store, plan: Plan, folder: Path) -> None:
    data = folder / "data"
    for count, step in enumerate(plan.steps):
        if count % 2:
            continue
        data.write_text(step.name)
        digest, size = store.put_file(data, move=True)
        output = Output(name="output", filename="output", sha256=digest, size=size)
        started = "2025-01-01T00:00:00Z"
        store.put_record(
            Record(
                key=step.key,
                content_key=step.key,
                step=step.name,
                kind=step.kind,
                outputs=(output,),
                started=started,
                seconds=1,
            )
        )
