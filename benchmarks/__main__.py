"""`python -m benchmarks [NAME..]`: measure, print the table, keep it in RESULTS.md and results.json."""

from __future__ import annotations

import argparse
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from compileall import compile_dir
from pathlib import Path

import rocwright
from benchmarks import machine, results
from benchmarks.measure import BenchError
from benchmarks.place import GFX_SMOKE, TORCH, bench_home
from benchmarks.results import Entry, Measured
from benchmarks.rows import (
    bisect_,
    ccache,
    diagnose,
    diagnose_threads,
    doctor,
    farm,
    first_commands,
    fresh,
    jobs_calm,
    jobs_real,
    jobs_shared,
    jobs_synthetic,
    noop,
    outputs,
    plan,
    recipe_line,
    records,
    roots,
    run_first,
    run_program,
    run_server,
    scaling,
    second_machine,
    shards,
    sharing,
    start,
    start_wheel,
    store,
    watch,
    web,
    web_log,
    wheel_bundle,
    wheel_index,
    wheel_inspect,
    wheel_normalise,
    wheel_slim,
    wheel_targets,
)
from rocwheel.processes import startup
from rocwheel_samples import MissingError

ROWS: Mapping[str, Callable[[int | None], Sequence[Measured]]] = {
    "help": start.measure,
    "rocwheel": start_wheel.measure,
    "run-program": run_program.measure,
    "run-server": run_server.measure,
    "run-first": run_first.measure,
    "doctor": doctor.measure,
    "plan": plan.measure,
    "store": store.measure,
    "sharing": sharing.measure,
    "farm": farm.measure,
    "scaling": scaling.measure,
    "second-machine": second_machine.measure,
    "shards": shards.measure,
    "outputs": outputs.measure,
    "roots": roots.measure,
    "diagnose": diagnose.measure,
    "diagnose-threads": diagnose_threads.measure,
    "watch": watch.measure,
    "bisect": bisect_.measure,
    "jobs:calm": jobs_calm.measure,
    "jobs:synthetic": jobs_synthetic.measure,
    "jobs:real": jobs_real.measure,
    "jobs:overhead": jobs_shared.overhead,
    "jobs:at-once": jobs_shared.at_once,
    "records": records.measure,
    "web:pages": web.measure,
    "web:log": web_log.measure,
    "wheel-bundle": wheel_bundle.measure,
    "wheel-index": wheel_index.measure,
    "wheel-inspect": wheel_inspect.measure,
    "wheel-normalise": wheel_normalise.measure,
    "wheel-slim": wheel_slim.measure,
    "wheel-targets": wheel_targets.measure,
    "fresh:gfx-smoke": fresh.fresh(GFX_SMOKE, "gfx-smoke", 5),
    "fresh:torchaudio": fresh.fresh(TORCH, "torchaudio", 2),
    "fresh:pytorch": first_commands.measure,
    "noop": noop.measure,
    "recipe-line": recipe_line.measure,
    "ccache": ccache.measure,
}
"""Every row, the quick ones first."""

ORDER = (
    "fresh",
    "noop",
    "recipe-line",
    "help",
    "rocwheel",
    "doctor",
    "run-program",
    "run-server",
    "run-first",
    "plan",
    "store",
    "sharing",
    "farm",
    "scaling",
    "second-machine",
    "shards",
    "outputs",
    "diagnose",
    "jobs",
    "watch",
    "bisect",
    "records",
    "web",
    "wheel-bundle",
    "wheel-index",
    "wheel-inspect",
    "wheel-normalise",
    "wheel-slim",
    "wheel-targets",
    "ccache",
)
"""The rows in the table."""


def main() -> int:
    """Measure what is named, or everything; 1 where a row could not be measured, 2 where one is worse."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ROWS)} (fresh: all three)")
    parser.add_argument("--runs", type=int, help="pairs for each row, in place of each row's own number")
    options = parser.parse_args()
    unknown = [name for name in options.names if not _chosen([name])]
    if unknown:
        parser.error(f"no row is called {', '.join(unknown)}; there are {', '.join(ROWS)}")
    startup.settle()  # as the command does
    # an installed package has its bytecode; a fresh checkout gets it here
    compile_dir(Path(rocwright.__file__).parent, quiet=1)
    failed, worse = False, list[str]()
    for name in _chosen(options.names):
        try:
            found = _measure(name, options.runs)
        except (BenchError, MissingError) as error:
            print(f"  {name} could not be measured: {error}", flush=True)
            failed = True
            continue
        except Exception:
            print(f"  {name} could not be measured:\n{traceback.format_exc()}", flush=True)
            failed = True
            continue
        results.write(results.read() | found, ORDER)
        worse += results.worse_than_before(found.values())
        for row in found.values():
            print(f"  {_line(row)}", flush=True)
    print(f"\n{_table(list(results.read().values()))}\n\nwritten to {results.PAGE}")
    if worse:
        print("\nworse than before:", *(f"  {line}" for line in worse), sep="\n")
    return 1 if failed else 2 if worse else 0


def _chosen(names: Sequence[str]) -> list[str]:
    """Rows by name or by what stands before the colon; all where none is named."""
    return [row for row in ROWS if not names or row in names or row.partition(":")[0] in names]


def _measure(name: str, runs: int | None) -> dict[str, Entry]:
    others, before, begun = machine.others(), machine.load(), time.monotonic()
    commit, last = machine.commit(results.FOLDER), results.read()
    busy = f", {others:.0%} of the cores are taken by others" if others > results.QUIET else ""
    print(f"{name} ...{busy}", flush=True)
    found = ROWS[name](runs)
    print(f"  took {time.monotonic() - begun:.0f} s", flush=True)
    where, after = machine.describe(bench_home().path), machine.load()
    return {
        row.name: results.entry(row, where, before, after, others, commit, last.get(row.name))
        for row in found
    }


def _line(row: Entry) -> str:
    reached = {True: "reached", False: "NOT REACHED", None: "-"}[row.reached]
    return f"{row.name}: {row.figure} ({row.range}, {row.runs} runs), goal {row.goal}: {reached}. {row.note}"


def _table(rows: Sequence[Entry]) -> str:
    words = {True: "yes", False: "NO", None: "-"}
    cells = [("row", "goal", "figure", "least to most", "runs", "reached")]
    cells += [(r.name, r.goal, r.figure, r.range, str(r.runs), words[r.reached]) for r in rows]
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


if __name__ == "__main__":
    raise SystemExit(main())
