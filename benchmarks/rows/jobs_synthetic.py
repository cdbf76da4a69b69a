"""64 compilers of 0.1 to 2 GiB under 4 GiB: the job server against every fixed number of jobs."""

from __future__ import annotations

import os
from collections.abc import Sequence

from benchmarks.crowd import Compiler, Race, Shop, clean, compilers, lay_out
from benchmarks.place import ENGINE, Scratch, bench_home
from benchmarks.results import Measured
from rocwright import sandbox
from rocwright.sources.bases.roots import remove_tree

GIB = 1024**3
LIMIT = 4 * GIB
COUNT, LEAST, MOST, SEED = 64, 100, 2048, 5
# Processor seconds for a GiB, at least 0.8 times that: about the time that touching it takes in any case.
PACE = 0.9


def measure(runs: int | None) -> Sequence[Measured]:
    """Two rows: against the best number, and what was killed."""
    place = Scratch(path=bench_home().path / "bench" / f"crowd-{os.getpid()}")
    remove_tree(place.path)
    try:
        return _measure(place, compilers(SEED, COUNT, LEAST, MOST, PACE), runs or 3)
    finally:
        remove_tree(place.path)


def _measure(place: Scratch, crowd: Sequence[Compiler], runs: int) -> Sequence[Measured]:
    shop = Shop(engine=sandbox.pick(ENGINE, bench_home().probes), folder=place.path / "work")
    lay_out(shop.folder, crowd)
    most = 4 * (os.cpu_count() or 1)
    race = Race(
        shop=shop,
        home=place.home,
        clean=lambda: clean(shop.folder),
        limit=LIMIT,
        reckoned=GIB,
        most=most,
    )
    plain = race.fixed(f"ninja -j{most}")
    told = race.run(range(1, most + 1), runs)
    return [
        Measured(
            name="jobs:synthetic",
            what=f"{COUNT} compilers of 0.1 to 2 GiB under {LIMIT // GIB} GiB, `make` under the job server "
            f"with up to {most} jobs and nothing learnt, over the best fixed -j of 1 to {most}",
            values=told.ratios,
            most=1.15,
            note=told.note,
        ),
        Measured(
            name="jobs:kills",
            what="kills for memory in those runs under the job server",
            values=told.kills,
            unit="kills",
            most=0,
            note=f"plain `ninja -j{most}` {'was killed' if plain.killed else 'was NOT killed'} "
            f"after {plain.wall:.1f} s",
        ),
    ]
