"""Builds that start with nothing learnt, reckoned with compilers that were seen: lost tries, and how long."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.jobs_simulated import against_best, drawn, fastest
from benchmarks.results import Measured

COUNT, LATE = 100, 20


def measure(runs: int | None) -> Sequence[Measured]:
    """Four rows: tries that were lost, and times the best fixed number's time, in three sorts of builds."""
    count = COUNT if runs is None else runs
    works = [drawn(seed) for seed in range(count)]
    bests = [fastest(work) for work in works]
    cold = [against_best(work, best=best) for work, best in zip(works, bests, strict=True)]
    late = [against_best(drawn(seed, late=True)) for seed in range(min(LATE, count))]
    learnt = [against_best(work, learnt=True, best=best) for work, best in zip(works, bests, strict=True)]
    lost = sum(told.killed for told, _ in (*cold, *late, *learnt))
    what = "simulated builds of recorded compilers on 2 to 16 processors, over the best fixed -j"

    def row(name: str, of: Sequence[tuple[object, float]], said: str, most: float) -> Measured:
        ratios = sorted(ratio for _, ratio in of)
        return Measured(
            name=name,
            what=f"the slowest of {len(of)} {what}, {said}",
            values=(ratios[-1],),
            most=most,
            note=f"median {ratios[len(ratios) // 2]:.2f}, "
            f"{sum(ratio > most for ratio in ratios)} above the goal",
        )

    return [
        Measured(
            name="jobs:lost",
            what=f"tries lost for memory in {len(cold) + len(late) + len(learnt)} {what}",
            values=(lost,),
            unit="tries",
            most=0,
        ),
        row("jobs:cold", cold, "nothing learnt", 1.25),
        row("jobs:late", late, "nothing learnt, memory reached only at the end of each", 1.6),
        row("jobs:learnt", learnt, "peaks learnt from one build of the same", 1.1),
    ]
