"""Work in threads, the results in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from rocwheel.wheels.devicecode.bundles import MOST_WAITING, MemoryJob, in_turn
from rocwheel_samples.tables import each


def jobs(
    count: int, memory: int, run: Callable[[int], int] = lambda number: number
) -> Iterator[MemoryJob[int]]:
    for number in range(count):
        yield MemoryJob(memory, 0, lambda number=number: run(number))  # type: ignore[misc]


@pytest.mark.parametrize("memory", [0, 1, 1000])
@pytest.mark.parametrize("cores", [1, 2, 5])
def test_results_come_in_order(memory: int, cores: int) -> None:
    assert list(in_turn(jobs(100, memory), 100, cores)) == list(range(100))


def test_two_are_under_way_where_there_is_room() -> None:
    meet = threading.Barrier(2)

    def run(number: int) -> int:
        meet.wait(60)  # for ever, were it alone
        return number

    assert list(in_turn(jobs(2, 50, run), 100, 2)) == [0, 1]


@each(("memory", "cores", "most"), [(50, 8, 2), (100, 8, 1), (1000, 8, 1), (1, 3, 3)])
def test_no_more_are_under_way_than_there_is_room_for(memory: int, cores: int, most: int) -> None:
    lock, under_way, seen = threading.Lock(), 0, 0

    def run(number: int) -> int:
        nonlocal under_way, seen
        with lock:
            under_way += 1
            seen = max(seen, under_way)
        threading.Event().wait(0.002)
        with lock:
            under_way -= 1
        return number

    assert list(in_turn(jobs(40, memory, run), 100, cores)) == list(range(40))
    assert seen <= most


def test_not_all_are_asked_for_before_the_first_is_given() -> None:
    asked = 0

    def counted() -> Iterator[MemoryJob[int]]:
        nonlocal asked
        for job in jobs(1000, 1):
            asked += 1
            yield job

    results = in_turn(counted(), 10**9, 2)
    next(results)
    assert asked <= MOST_WAITING + 1
    assert list(results) == list(range(1, 1000))


def test_what_a_job_raises_comes_in_its_turn() -> None:
    def run(number: int) -> int:
        if number == 3:
            raise ValueError("the fourth")
        return number

    results = in_turn(jobs(10, 1, run), 100, 2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="the fourth"):
        next(results)


def test_work_of_the_callers_own_thread_waits_for_what_was_asked_before() -> None:
    def mixed() -> Iterator[MemoryJob[int]]:
        for job in jobs(10, 1):
            yield job
            yield MemoryJob(0, 0, threading.get_ident)

    found = list(in_turn(mixed(), 100, 2))
    assert found[::2] == list(range(10))
    assert set(found[1::2]) == {threading.get_ident()}
