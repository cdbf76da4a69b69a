"""A library of generated HIP files: whole, and in shards, each alone on the machine, one after the other."""

from __future__ import annotations

import os
from collections.abc import Sequence

from benchmarks.hip_units import NAME, write_catalog
from benchmarks.measure import BenchError, middle
from benchmarks.place import ENGINE, Scratch, Stack, bench_home, scratch
from benchmarks.results import Measured
from rocbase.units import duration
from rocwright.execution.exec_step import execute
from rocwright.execution.options import StepOptions
from rocwright.execution.shards import shards_of
from rocwright.model.steps import Step
from rocwright.store.model import Record

# Environment variable with the number of files where 40 take too long (the row says how many).
COUNT = "ROCWRIGHT_BENCH_HIP_FILES"

# By the number of shards: what the slowest of them and the step itself may take of the time of the whole.
GOALS = {2: 0.60, 4: 0.35}


def measure(runs: int | None) -> Sequence[Measured]:
    """A row for each number of shards."""
    count = int(os.environ.get(COUNT, "40"))
    catalog = write_catalog(bench_home().path / "bench" / NAME / f"{count}", count)
    stack = Stack(name=NAME, gpu=("gfx1151",), base="debian:sid", catalog=catalog)
    with scratch(stack) as place:
        step = place.step(stack, NAME)
        found = [_once(place, step, count) for _ in range(runs or 1)]
    return [_measured([one[parts] for one in found], parts, count) for parts in GOALS]


class _Split:
    """Seconds of the whole, of each shard, and of the step that read their caches; and what it compiled."""

    def __init__(self, whole: Record, shards: Sequence[Record], last: Record) -> None:
        self.whole, self.shards, self.last = whole.seconds, [one.seconds for one in shards], last.seconds
        self.hits, self.misses = (last.compiler_cache.get(name, 0) for name in ("hit", "miss"))

    @property
    def ratio(self) -> float:
        return (max(self.shards) + self.last) / self.whole


def _once(place: Scratch, step: Step, count: int) -> dict[int, _Split]:
    """The whole, and then each number of shards. Raises BenchError where the bytes are not those of the
    whole, or the step compiled what its shards had."""
    found = {}
    whole = _run(place, step)
    for parts in GOALS:
        shards = [_run(place, one) for one in shards_of(step, parts)]
        last = _run(place, step, [one.key for one in shards])
        if last.outputs != whole.outputs:
            raise BenchError(f"{parts} shards gave other bytes than the whole")
        found[parts] = split = _Split(whole, shards, last)
        if len(last.shards) != parts or split.hits < count:
            raise BenchError(f"with {parts} shards the step had {split.hits} of {count} files from them")
    return found


def _run(place: Scratch, step: Step, shards: Sequence[str] = ()) -> Record:
    """Run a step as on a machine of its own, which has compiled nothing yet and has all the cores."""
    place.unbuild(step)
    place.empty_compiler_cache()
    place.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    with place.log.open("a") as log:
        record = execute(
            step.key,
            place.store,
            place.home,
            lambda line: print(line, file=log),
            jobs=os.cpu_count() or 1,
            options=StepOptions(engine=ENGINE, resume=False),
            shards=shards,
        )
    print(f"    {step.name}: {duration(record.seconds)}", flush=True)
    return record


def _measured(found: Sequence[_Split], parts: int, count: int) -> Measured:
    def seconds(values: Sequence[float]) -> str:
        return duration(middle(values))

    each = ", ".join(seconds([one.shards[at] for one in found]) for at in range(parts))
    last = found[-1]
    return Measured(
        name=f"shards:{parts}",
        what=f"{count} HIP files in {parts} shards: the slowest shard and the step itself, configuring "
        "included, against the whole",
        values=[one.ratio for one in found],
        most=GOALS[parts],
        note=f"whole {seconds([one.whole for one in found])}; shards {each}; the step itself "
        f"{seconds([one.last for one in found])}, {last.hits} of {last.hits + last.misses} from the shards; "
        f"the same bytes each time; {os.cpu_count()} jobs, one after the other, each alone and with an empty "
        "compiler cache; times of the records",
    )
