"""One line of a recipe changed: the whole `build` against that step alone, and buildah's for comparison."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from benchmarks.by_hand import by_hand
from benchmarks.changed import build_changed, changed_catalog, with_variable
from benchmarks.containers import CHANGE, Containers
from benchmarks.measure import BenchError, Took, processor, seconds
from benchmarks.place import TORCH, Scratch, scratch
from benchmarks.results import Measured
from rocwright.records.model import StepRun
from rocwright.records.opening import read_records

COMPONENT = "torchvision"


def measure(runs: int | None) -> Sequence[Measured]:
    """Two rows."""
    with scratch(TORCH) as place:
        containers = Containers(place)
        try:
            return _measure(place, containers, runs or 1)
        finally:
            containers.close()


def _measure(place: Scratch, containers: Containers, runs: int) -> list[Measured]:
    step = place.step(TORCH, COMPONENT)
    built: list[Took] = []
    alone: list[float] = []
    typed: list[Took] = []
    layered: list[Took] = []
    jobs = 1
    for count in range(runs):
        value = secrets.token_hex(4)
        place.empty_compiler_cache()
        catalog = changed_catalog(place, COMPONENT, with_variable(CHANGE, value))
        built.append(build_changed(place, TORCH, catalog))
        ran = _ran(place)
        alone.append(ran.seconds)
        jobs = ran.jobs
        print(f"    build: {built[-1].wall:.1f} s, of it the step {alone[-1]:.1f} s", flush=True)
        typed.append(by_hand(place, step, jobs=jobs, env={CHANGE: value}))
        if count == 0:
            _first(place, containers, jobs)
        layered.append(_layered(place, containers, jobs, value))
        print(f"    buildah: {layered[-1].wall:.1f} s", flush=True)
    return [
        Measured(
            name="recipe-line",
            what=f"one line of {COMPONENT}'s recipe changed: the whole `build` against the {COMPONENT} step "
            "alone, typed by hand in bubblewrap",
            values=[a.wall / b.wall for a, b in zip(built, typed, strict=True)],
            most=1.05,
            note=f"build {seconds(built)}, of it the step as rocwright records it {seconds(alone)}; "
            f"by hand {seconds(typed)}; processor time {processor(built)} against "
            f"{processor(typed)}; only {COMPONENT} was run; {jobs} jobs, an empty compiler cache "
            "for each",
        ),
        Measured(
            name="recipe-line:buildah",
            what=f"the same change in one Containerfile with `buildah build --layers`, against the same "
            f"{COMPONENT} step typed by hand",
            values=[c.wall / b.wall for c, b in zip(layered, typed, strict=True)],
            note=f"{seconds(layered)}: torchaudio comes after it in the file and is built again too",
        ),
    ]


def _ran(place: Scratch) -> StepRun:
    """The one step that the last build ran."""
    with read_records(place.home) as records:
        steps = records.runs(limit=1)[0].steps
    if [one.name for one in steps] != [COMPONENT]:
        raise BenchError(f"{', '.join(one.name for one in steps)} were run, not {COMPONENT} alone")
    return steps[0]


def _first(place: Scratch, containers: Containers, jobs: int) -> None:
    """Build the Containerfile once, quickly: with the compiler cache of the benchmarks' home."""
    print("    buildah builds the Containerfile as it was", flush=True)
    cache = place.path / "ccache"
    place.copy_compiler_caches(cache)
    containers.prepare(TORCH)
    containers.build(TORCH, cache, jobs=jobs)
    place.drop(cache)


def _layered(place: Scratch, containers: Containers, jobs: int, value: str) -> Took:
    cache = place.path / "ccache"
    took = containers.build(TORCH, cache, jobs=jobs, change={COMPONENT: value})
    place.drop(cache)
    return took
