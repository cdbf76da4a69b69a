"""The records of a busy machine: the matrix, the runs of a page, a run that is put in, `history` whole."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from benchmarks.many_runs import fill
from benchmarks.measure import paired, processor, seconds, timed
from benchmarks.place import BIN, bench_home
from benchmarks.results import Measured
from rocwright.bases.roots import remove_tree
from rocwright.home import Home
from rocwright.records.model import Which
from rocwright.records.opening import open_records

CELLS, RUNS = 2_000, 100_000


def measure(runs: int | None) -> Sequence[Measured]:
    """Four rows on one database."""
    folder = bench_home().path / "bench" / "records"
    remove_tree(folder)
    try:
        begun = time.perf_counter()
        fill(Home(folder), cells=CELLS, runs=RUNS)
        took = f"{RUNS:,} runs of {CELLS:,} cells, made in {time.perf_counter() - begun:.0f} s"
        print(f"    {took}", flush=True)
        return _measure(Home(folder), runs or 31, took)
    finally:
        remove_tree(folder)


def _measure(home: Home, runs: int, note: str) -> list[Measured]:
    with open_records(home) as records:
        newest = records.runs(limit=1)[0]
        cell = Which(stack=newest.stack, gpu=newest.gpu[0], base=newest.base)
        names = iter(range(10**9))

        def put() -> None:
            records.put(newest.model_copy(update={"id": f"new-{next(names)}"}))

        matrix = _times(records.matrix, runs)
        changed = _times(records.changed, runs)
        page = _times(lambda: (records.runs(limit=50, steps=False), records.runs(cell, limit=50)), runs)
        trend = _times(lambda: records.steps(cell, component="torch"), runs)
        written = _times(put, runs)
    log = home.path / "log"
    history = paired(
        lambda: timed([BIN / "rocwright", "history"], log=log, env={"ROCWRIGHT_HOME": str(home.path)}),
        lambda: timed([sys.executable, "-c", "import sqlalchemy, pydantic, click"], log=log),
        runs,
        warm=1,
    )
    return [
        Measured(
            name="records:matrix",
            what=f"the whole matrix, {CELLS:,} cells of {RUNS:,} runs, read from SQLite",
            values=matrix,
            unit="s",
            most=0.05,
            note=f"{note}; whether anything changed since: {seconds(changed)}",
        ),
        Measured(
            name="records:page",
            what=f"of {RUNS:,} runs the 50 newest, and the 50 newest of a cell with their steps",
            values=page,
            unit="s",
            most=0.05,
            note=f"a component of a cell over time: {seconds(trend)}",
        ),
        Measured(
            name="records:put",
            what=f"a run of {len(newest.steps)} steps put beside {RUNS:,} others",
            values=written,
            unit="s",
            most=0.05,
            note="one transaction: the run, its steps, the cell",
        ),
        Measured(
            name="records:history",
            what="`rocwright history` against the bare import of the libraries that it stands on",
            values=history.ratios,
            most=2,
            note=f"{seconds(history.a)} against {seconds(history.b)}; processor time "
            f"{processor(history.a)} against {processor(history.b)}",
        ),
    ]


def _times(work: Callable[[], object], runs: int) -> list[float]:
    """Wall seconds of each time, the first not counted."""
    found = []
    for _ in range(runs + 1):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return found[1:]
