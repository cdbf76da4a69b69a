"""`python -m benchmarks [NAME..]`: measure, print the table, write it to .out/bench."""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Callable, Mapping, Sequence
from compileall import compile_dir
from pathlib import Path

import rocwright
from benchmarks import machine, results
from benchmarks.measure import BenchError
from benchmarks.place import bench_home
from benchmarks.results import Measured
from benchmarks.rows import (
    diagnose,
    fresh,
    jobs_calm,
    jobs_real,
    jobs_synthetic,
    noop,
    plan,
    shards,
    start,
    wheel_inspect,
)
from rocbase.processes import startup
from rocwheel_samples import MissingError

# What is measured together, the quick ones first.
ROWS: Mapping[str, Callable[[int | None], Sequence[Measured]]] = {
    "start": start.measure,
    "plan": plan.measure,
    "wheel-inspect": wheel_inspect.measure,
    "diagnose": diagnose.measure,
    "jobs:calm": jobs_calm.measure,
    "jobs:synthetic": jobs_synthetic.measure,
    "jobs:real": jobs_real.measure,
    "noop": noop.measure,
    "fresh": fresh.measure,
    "shards": shards.measure,
}


def main() -> int:
    """Measure the named rows, or all; return 1 if one cannot be measured, 2 if one is worse than before."""
    options = _options()
    startup.settle()  # as the command does
    # an installed package has its bytecode; a fresh checkout gets it here
    compile_dir(Path(rocwright.__file__).parent, quiet=1)
    earlier = results.read(options.against) if options.against else {}
    about = _about()
    rows, failed = list[Measured](), False
    for name in _chosen(options.names):
        print(f"{name} ...", flush=True)
        try:
            rows += ROWS[name](options.runs)
        except (BenchError, MissingError) as error:
            print(f"  {name} could not be measured: {error}", flush=True)
            failed = True
        except Exception:
            print(f"  {name} could not be measured:\n{traceback.format_exc()}", flush=True)
            failed = True
    page = results.write(rows, about, earlier)
    print(f"\n{results.table(rows, earlier)}\n\nwritten to {page}")
    return 1 if failed else 2 if any(results.is_worse(row, earlier) for row in rows) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ROWS)} (jobs: all three)")
    parser.add_argument("--runs", type=int, help="pairs for each row instead of the row's own number")
    parser.add_argument("--against", type=Path, metavar="FILE", help="results.json of an earlier run")
    options = parser.parse_args()
    if unknown := [name for name in options.names if not _chosen([name])]:
        parser.error(f"no row is called {', '.join(unknown)}; the rows are {', '.join(ROWS)}")
    return options


def _chosen(names: Sequence[str]) -> list[str]:
    """Return the rows by name or by the part before the colon; all of them for no name."""
    return [row for row in ROWS if not names or row in names or row.partition(":")[0] in names]


def _about() -> dict[str, str]:
    """Describe the run: commit, machine, load, and a warning if other processes take much of it."""
    others = machine.others()
    busy = " (busy: take the figures with care)" if others > results.QUIET else ""
    return {
        "commit": machine.commit(results.FOLDER.parent),
        "machine": machine.describe(bench_home().path),
        "load": machine.load(),
        "taken by others": f"{others:.0%} of the cores{busy}",
    }


if __name__ == "__main__":
    raise SystemExit(main())
