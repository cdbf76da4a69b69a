"""`build` with nothing to do."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measure import BenchError, Took, middle, processor, seconds
from benchmarks.place import GFX_SMOKE, LLAMA, TORCH, Scratch, Stack, scratch
from benchmarks.results import Measured

STACKS = (LLAMA, TORCH, GFX_SMOKE)


def measure(runs: int | None) -> Sequence[Measured]:
    """Measure the slowest of three stacks."""
    with scratch(*STACKS) as place:
        each = {stack.name: _timed(place, stack, runs or 11) for stack in STACKS}
    slowest = max(each.values(), key=lambda times: middle([took.wall for took in times]))
    return [
        Measured(
            name="noop",
            what="`build` with nothing to do, the slowest of three stacks",
            values=[took.wall for took in slowest],
            unit="s",
            most=0.3,
            note=f"processor time {processor(slowest)}; "
            + ", ".join(f"{name} {seconds(times)}" for name, times in each.items()),
        )
    ]


def _timed(place: Scratch, stack: Stack, runs: int) -> list[Took]:
    times = []
    for _ in range(runs + 1):
        times.append(place.build(stack))
        if "nothing to do" not in place.log.read_text():
            raise BenchError(f"{stack.name}: there was something to do")
    return times[1:]
