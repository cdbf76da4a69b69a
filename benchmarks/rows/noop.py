"""`build` with nothing to do, three stacks, against `buildah build --layers` with nothing to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from benchmarks.containers import Containers
from benchmarks.measure import BenchError, Took, middle, paired, processor, seconds
from benchmarks.place import GFX_SMOKE, LLAMA, TORCH, Scratch, scratch
from benchmarks.results import Measured

STACKS = (LLAMA, TORCH, GFX_SMOKE)
JOBS = 2


def measure(runs: int | None) -> Sequence[Measured]:
    """One row."""
    with scratch(*STACKS) as place:
        containers = Containers(place)
        try:
            return _measure(place, containers, runs or 11)
        finally:
            containers.close()


def _measure(place: Scratch, containers: Containers, runs: int) -> list[Measured]:
    cache = place.path / "ccache"
    place.copy_compiler_caches(cache)
    for stack in STACKS:
        containers.prepare(stack)
        print(f"    buildah builds {stack.name} once", flush=True)
        containers.build(stack, cache, jobs=JOBS)
    single: dict[str, list[Took]] = defaultdict(list)

    def rocwright() -> Took:
        for stack in STACKS:
            single[f"build {stack.name}"].append(place.build(stack))
            if "nothing to do" not in place.log.read_text():
                raise BenchError(f"{stack.name}: there was something to do")
        return sum((single[f"build {stack.name}"][-1] for stack in STACKS), Took(0, 0))

    def buildah() -> Took:
        for stack in STACKS:
            single[f"buildah {stack.name}"].append(containers.build(stack, cache, jobs=JOBS))
            said = place.log.read_text()
            if said.count("Using cache") < sum(line.startswith("STEP") for line in said.splitlines()) // 2:
                raise BenchError(f"{stack.name}: buildah had something to do")
        return sum((single[f"buildah {stack.name}"][-1] for stack in STACKS), Took(0, 0))

    pairs = paired(rocwright, buildah, runs, warm=1)
    each = "; ".join(f"{name} {seconds(values[1:])}" for name, values in single.items())
    against = Measured(
        name="noop",
        what="`build` with nothing to do, three stacks, against `buildah build --layers` with nothing to do "
        "on equal Containerfiles that copy the same sources",
        values=pairs.ratios,
        most=1,
        note=f"{seconds(pairs.a)} against {seconds(pairs.b)} for the three ({each}); "
        f"processor time {processor(pairs.a)} against {processor(pairs.b)}; "
        "roots are local images, imported before",
    )
    slowest = max(
        (single[f"build {stack.name}"][1:] for stack in STACKS),
        key=lambda each: middle([one.wall for one in each]),
    )
    return [
        against,
        Measured(
            name="noop:slowest",
            what="`build` with nothing to do, the slowest of the three stacks",
            values=[one.wall for one in slowest],
            unit="s",
            most=0.3,
            note=f"processor time {processor(slowest)}",
        ),
    ]
