"""`build` of an unbuilt component against the same commands typed by hand in the same sandbox."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.by_hand import by_hand
from benchmarks.measure import Took, paired, processor, seconds
from benchmarks.place import GFX_SMOKE, Scratch, scratch
from benchmarks.results import Measured
from rocwright.store.model import Record

COMPONENT = "gfx-smoke"


def measure(runs: int | None) -> Sequence[Measured]:
    """Measure the seconds of a whole build, and the processor seconds that rocwright adds to its step."""
    with scratch(GFX_SMOKE) as place:
        return _measure(place, runs or 5)


def _measure(place: Scratch, runs: int) -> list[Measured]:
    step = place.step(GFX_SMOKE, COMPONENT)
    records: list[Record] = []

    def built() -> Took:
        place.unbuild(step)
        place.empty_compiler_cache()
        took = place.build(GFX_SMOKE)
        record = place.store.record(step.key)
        assert record is not None
        assert not record.reused
        records.append(record)
        return took

    place.root_of(step)
    pairs = paired(built, lambda: by_hand(place, step, jobs=records[-1].jobs), runs)
    what = f"`build` of an unbuilt {COMPONENT} against the same commands typed by hand in bubblewrap"
    note = (
        f"build {seconds(pairs.a)} (of it the step {seconds([record.seconds for record in records])}), "
        f"by hand {seconds(pairs.b)}; processor time {processor(pairs.a)} against {processor(pairs.b)}; "
        "an empty compiler cache for each run of either; roots and sources there"
    )
    return [
        Measured(
            name="fresh:gfx-smoke",
            what=f"{what}: seconds more",
            values=[a.wall - b.wall for a, b in zip(pairs.a, pairs.b, strict=True)],
            unit="s",
            most=1,
            note=note,
        ),
        Measured(
            name="fresh:gfx-smoke:processor",
            what=f"{what}: processor seconds more",
            values=[a.cpu - b.cpu for a, b in zip(pairs.a, pairs.b, strict=True)],
            unit="s",
            most=0.5,
            note="of rocwright's own processes, without what runs in the sandbox",
        ),
    ]
