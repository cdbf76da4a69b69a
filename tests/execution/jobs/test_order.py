"""In which order all that runs can be finished."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rocwright.execution.jobs.order import ProcessMemory, may_run, order


def test_of_those_of_which_nothing_is_known_the_one_that_holds_most_is_the_next() -> None:
    jobs = [ProcessMemory(100, 100), ProcessMemory(250, 250), ProcessMemory(300, 240)]
    assert [place.job for place in order(-1000, jobs)] == [0, 2, 1]
    guessed = [replace(one, guessed=True) for one in jobs[:2]]
    assert [place.job for place in order(-1000, [*guessed, jobs[2]])] == [2, 1, 0]


sizes = st.lists(st.builds(ProcessMemory, st.integers(0, 50), st.integers(0, 50)), max_size=7)


@given(st.integers(0, 120), sizes)
def test_the_order_ends_everybody_where_any_order_does(available: int, jobs: list[ProcessMemory]) -> None:
    """Compared with taking, at each turn, whoever wants least: the classical test of a safe state."""
    left, safe = available, True
    for job in sorted(jobs, key=lambda job: job.wants):
        safe = safe and job.wants <= left
        left += job.holds
    places = order(available, jobs)
    assert sorted(place.job for place in places) == list(range(len(jobs)))
    assert all(place.spare >= 0 for place in places) == safe


@given(st.integers(0, 120), sizes, st.integers(1, 20))
def test_growth_of_those_who_go_on_leaves_an_order(
    available: int, jobs: list[ProcessMemory], step: int
) -> None:
    places = order(available, jobs)
    goes = may_run(places, [step] * len(jobs))
    grown = list(jobs)
    left = available
    for place, may in zip(places, goes, strict=True):
        if may:
            growth = min(step, jobs[place.job].wants)
            left -= growth
            one = jobs[place.job]
            grown[place.job] = ProcessMemory(one.holds + growth, one.wants - growth)
    if all(place.spare >= 0 for place in places):
        assert all(place.spare >= 0 for place in order(left, grown))
    assert not jobs or goes[0]
