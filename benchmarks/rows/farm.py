"""What dask adds to each step, and what it takes to hand a large plan over.

`python -m benchmarks.rows.farm run EXECUTOR HOME` runs the steps that `lay_in` put into a home;
`... hand HOME COUNT` hands so many to a coordinator and tells seconds and bytes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from samples.making import make_tiny_root, put_output

from benchmarks.measure import Took, paired, processor, seconds, timed
from benchmarks.place import ENGINE, bench_home
from benchmarks.results import Measured
from rocwright.bases.roots import remove_tree
from rocwright.execution.executor import Task
from rocwright.execution.options import Options
from rocwright.execution.progress import PlainProgress
from rocwright.farm.executors import run_steps
from rocwright.home import Home
from rocwright.model.steps import (
    BaseAction,
    FetchAction,
    Input,
    OutputSpec,
    Plan,
    Resources,
    RunAction,
    Step,
    TreeAction,
)
from rocwright.plan.decide import decide
from rocwright.sources.archive import pack
from rocwright.store.local import LocalStore

COUNT = "ROCWRIGHT_BENCH_FARM_STEPS"
"""Environment variable with the number of steps where 300 take too long (the row says how many)."""

MANY = 10_000
SETTINGS = {"PYTHONPATH": os.environ.get("PYTHONPATH", str(Path.cwd()))}


def measure(runs: int | None) -> Sequence[Measured]:
    """Three rows: what a step costs more, how long handing over takes, and its memory."""
    count = int(os.environ.get(COUNT, "300"))
    folder = bench_home().path / "bench" / "farm"
    remove_tree(folder)
    folder.mkdir(parents=True)
    try:
        return [_overhead(folder, count, runs or 3), *_handed(folder, runs or 3)]
    finally:
        remove_tree(folder)


def _overhead(folder: Path, count: int, runs: int) -> Measured:
    def run_with(executor: str) -> Took:
        home = folder / executor
        remove_tree(home)
        lay_in(Home(home), count)
        env = {"ROCWRIGHT_HOME": str(home), **SETTINGS}
        return timed([sys.executable, "-m", __name__, "run", executor, home], log=folder / "log", env=env)

    pairs = paired(lambda: run_with("dask"), lambda: run_with("local"), runs)
    return Measured(
        name="farm:step",
        what=f"processor time that dask adds to each of {count} steps of `true`",
        values=[1000 * (a.cpu - b.cpu) / count for a, b in zip(pairs.a, pairs.b, strict=True)],
        unit="ms",
        most=30,
        note=f"a coordinator and a worker that live as long as the build, their start included, against the "
        f"executor of this machine: processor time {processor(pairs.a)} against {processor(pairs.b)}, "
        f"wall time {seconds(pairs.a)} against {seconds(pairs.b)}",
    )


def _handed(folder: Path, runs: int) -> list[Measured]:
    took, memory = [], []
    home = Home(folder / "handed")
    for _ in range(runs):
        log = folder / "log"
        env = {"ROCWRIGHT_HOME": str(home.path), **SETTINGS}
        timed([sys.executable, "-m", __name__, "hand", home.path, str(MANY)], log=log, env=env)
        # Python tells of what the hard end leaves behind, sometimes
        [line] = [line for line in log.read_text().splitlines() if line.startswith("{")]
        told = json.loads(line)
        took.append(told["seconds"])
        memory.append(told["memory"] / 1024**2)
    what = f"{MANY:,} steps handed to a coordinator"
    return [
        Measured(name="farm:handed", what=what, values=took, unit="s", most=20, note="all at once ready"),
        Measured(
            name="farm:memory",
            what=f"memory of the build and of the coordinator in one process, with {what}",
            values=memory,
            unit="MiB",
            most=400,
            note="peak resident memory (VmHWM)",
        ),
    ]


def lay_in(home: Home, count: int) -> None:
    """Put so many steps that do nothing into a home, their root and tree done."""
    home.path.mkdir(parents=True)
    store = LocalStore(home.store)
    packed = home.path / "root.tar.zst"
    make_tiny_root(packed, home.path)
    root = Step(name="root/build", component="root", action=BaseAction(suite="own", architecture="amd64"))
    put_output(store, root, "root", packed.read_bytes(), home.path)
    (home.path / "empty").mkdir()
    pack(home.path / "empty", packed, epoch=0)
    tree = Step(name="tree/empty", component="empty", action=TreeAction(subdir="empty"))
    put_output(store, tree, "tree", packed.read_bytes(), home.path)
    inputs = (
        Input(name="root", key=root.key, output="root"),
        Input(name="src", key=tree.key, output="tree"),
    )
    steps = [
        Step(
            name=f"true-{number}",
            component=f"true-{number}",
            action=RunAction(
                commands=("true", f"echo {number} > $OUT/made"),
                outputs=(OutputSpec(name="out", pattern="made"),),
            ),
            inputs=inputs,
            resources=Resources(limit=60),
        )
        for number in range(count)
    ]
    plan = Plan(steps=(root, tree, *steps), artifacts=tuple(step.name for step in steps))
    (home.path / "plan.json").write_text(plan.model_dump_json(by_alias=True))


def run(executor: str, home: Home) -> int:
    """Run what is laid in."""
    plan = Plan.model_validate_json((home.path / "plan.json").read_bytes())
    store = LocalStore(home.store)
    options = Options(engine=ENGINE, executor=executor)
    told = run_steps(decide(plan, store), store, home, options, home.runs / "bench", {}, PlainProgress())
    return 1 if told.failures else 0


def hand(home: Home, count: int) -> int:
    """Hand steps over, and tell how long that took and the memory of this process."""
    from distributed import LocalCluster

    from rocwright.farm.dask.executor import DaskExecutor

    home.path.mkdir(parents=True, exist_ok=True)
    # its worker is another process, with nothing to run: none of the steps is in the store
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        (home.path / "config.toml").write_text(f'[farm]\nscheduler = "{cluster.scheduler_address}"\n')
        steps = [
            Step(name=f"step-{number}", component="x", action=FetchAction(pending=str(number)))
            for number in range(count)
        ]
        tasks = [Task(step=step, store=home.store.as_uri(), jobs=1) for step in steps]
        with DaskExecutor(home, Options(executor="dask"), print) as executor:
            begun = time.perf_counter()
            for task in tasks:
                executor.submit(task)
            next(iter(executor.events()))
            # it runs in this process
            while len(cluster.scheduler.tasks) < count:
                time.sleep(0.01)
            took = time.perf_counter() - begun
            status = Path("/proc/self/status").read_text()
            [peak] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
            print(json.dumps({"seconds": took, "memory": int(peak) * 1024}), flush=True)
            os._exit(0)
    return 1


if __name__ == "__main__":
    verb, *rest = sys.argv[1:]
    if verb == "run":
        sys.exit(run(rest[0], Home(Path(rest[1]))))
    sys.exit(hand(Home(Path(rest[0])), int(rest[1])))
