"""`build` of an unbuilt component against the same commands typed by hand in the same sandbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.by_hand import by_hand
from benchmarks.measure import Took, middle, paired, processor, seconds
from benchmarks.place import Scratch, Stack, scratch
from benchmarks.results import Measured
from rocwright.store.model import Record

LONG = 60.0
"""Seconds of a step beside which a ratio says something: of a shorter one, the seconds themselves count."""


def fresh(stack: Stack, component: str, runs: int) -> Callable[[int | None], Sequence[Measured]]:
    """The row of a component; `runs` pairs unless more or fewer are asked for."""

    def measure(asked: int | None) -> Sequence[Measured]:
        with scratch(stack) as place:
            return _measure(place, stack, component, asked or runs)

    return measure


def _measure(place: Scratch, stack: Stack, component: str, runs: int) -> list[Measured]:
    step = place.step(stack, component)
    records: list[Record] = []

    def built() -> Took:
        place.unbuild(step)
        place.empty_compiler_cache()
        took = place.build(stack)
        record = place.store.record(step.key)
        assert record is not None
        assert not record.reused
        records.append(record)
        return took

    def typed() -> Took:
        return by_hand(place, step, jobs=records[-1].jobs)

    place.root_of(step)
    pairs = paired(built, typed, runs)
    steps = [record.seconds for record in records]
    what = f"`build` of an unbuilt {component} against the same commands typed by hand in bubblewrap"
    ratio = Measured(
        name=f"fresh:{component}",
        what=what,
        values=pairs.ratios,
        most=1.03 if middle(steps) >= LONG else None,
        note=f"build {seconds(pairs.a)} (of it the step {seconds(steps)}), by hand {seconds(pairs.b)}; "
        f"processor time {processor(pairs.a)} against {processor(pairs.b)}; "
        f"{records[-1].jobs} jobs; an empty compiler cache for each run of either; roots and sources there",
    )
    beside = Measured(
        name=f"fresh:{component}:processor",
        what=f"{what}: processor time that goes beside the step itself",
        values=[a.cpu - b.cpu for a, b in zip(pairs.a, pairs.b, strict=True)],
        unit="s",
        most=0.5 if middle(steps) < LONG else None,
        note="of rocwright's own processes, without what runs in the sandbox",
    )
    return [ratio, beside]
