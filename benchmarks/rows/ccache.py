"""A component again, with a warm compiler cache, after a comment changed in one source file."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from benchmarks.changed import build_changed, changed_catalog, with_comment, with_variable
from benchmarks.containers import CHANGE
from benchmarks.measure import Took, seconds
from benchmarks.place import TORCH, Scratch, scratch
from benchmarks.results import Measured
from rocwright.records.model import StepRun
from rocwright.records.opening import read_records

COMPONENT = "torchvision"
FILE = "torchvision/csrc/ops/cpu/nms_kernel.cpp"


def measure(runs: int | None) -> Sequence[Measured]:
    """One row."""
    with scratch(TORCH) as place:
        return [_measure(place, runs or 1)]


def _measure(place: Scratch, runs: int) -> Measured:
    cold: list[Took] = []
    warm: list[Took] = []
    hits = ""
    for _ in range(runs):
        place.empty_compiler_cache()
        catalog = changed_catalog(place, COMPONENT, with_variable(CHANGE, secrets.token_hex(4)))
        cold.append(build_changed(place, TORCH, catalog))
        print(f"    cold: {cold[-1].wall:.1f} s", flush=True)
        catalog = changed_catalog(place, COMPONENT, with_comment(FILE, secrets.token_hex(4)))
        warm.append(build_changed(place, TORCH, catalog))
        step = _step(place)
        counts = step.compiler_cache
        hits = (
            f"{counts.get('hit', 0)} hits and {counts.get('miss', 0)} misses, the step {step.seconds:.1f} s"
        )
        print(f"    warm: {warm[-1].wall:.1f} s, {hits}", flush=True)
    return Measured(
        name="ccache",
        what=f"{COMPONENT} again with a warm compiler cache after a comment changed in one source file: "
        "times faster than cold",
        values=[a.wall / b.wall for a, b in zip(cold, warm, strict=True)],
        least=5,
        note=f"the whole `build`: {seconds(cold)} cold, {seconds(warm)} warm ({hits}); the change is one "
        f"more [[edit]] in the recipe, which ends {FILE.rpartition('/')[2]} with a comment",
    )


def _step(place: Scratch) -> StepRun:
    with read_records(place.home) as records:
        (run,) = records.runs(limit=1)
    return next(step for step in run.steps if step.name == COMPONENT)
