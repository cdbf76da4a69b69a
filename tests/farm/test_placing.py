"""Which machine gets a step, and when."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rocwright.execution.executor import Task
from rocwright.farm.handed import Place, Runs
from rocwright.farm.placing import Placed, Waiting, others_have
from rocwright.model.steps import OutputSpec, Resources, RunAction, Step


def place(name: str, cores: int, memory: int = 2**34, runs: tuple[Runs, ...] = ()) -> Place:
    return Place(name=name, cores=cores, memory=memory, disk=2**40, machine="x86_64", runs=runs)


def task(name: str, priority: int = 0, cores: int = 64, memory: int = 0) -> Task:
    action = RunAction(commands=(name,), outputs=(OutputSpec(name="out", pattern="x"),))
    step = Step(name=name, component=name, action=action, resources=Resources(cores=cores, memory=memory))
    return Task(step=step, store="file:///store", jobs=64, priority=priority)


def waiting(places: dict[str, Place], *tasks: Task) -> Waiting:
    found = Waiting()
    for one in tasks:
        assert found.add(one, places)
    return found


def told(placed: list[Placed]) -> list[tuple[str, str, int]]:
    return [(one.task.step.name, one.where, one.cores) for one in placed]


TWO = {"small": place("small", 4), "large": place("large", 16)}


def test_the_first_by_priority_goes_to_the_largest_machine_and_the_rest_waits() -> None:
    queue = waiting(TWO, task("late", 2), task("later", 3), task("first", 1))
    assert told([*queue.place(TWO, {}, {})]) == [("first", "large", 16), ("late", "small", 4)]
    assert len(queue) == 1
    # nothing has room
    assert told([*queue.place(TWO, {"large": 16, "small": 4}, {})]) == []
    assert told([*queue.place(TWO, {"large": 16}, {})]) == [("later", "small", 4)]
    assert len(queue) == 0


def test_of_one_priority_the_first_that_came_is_first() -> None:
    queue = waiting(TWO, *(task(name) for name in "dacb"))
    assert [name for name, _, _ in told([*queue.place(TWO, {}, {})])] == ["d", "a"]


def test_what_uses_few_cores_runs_beside_another_and_what_uses_all_does_not() -> None:
    queue = waiting(TWO, task("narrow", 1, cores=2), task("narrow too", 2, cores=2), task("wide", 3))
    assert told([*queue.place(TWO, {}, {})]) == [
        ("narrow", "large", 2),
        ("narrow too", "large", 2),
        ("wide", "small", 4),
    ]


def test_what_only_one_machine_is_fit_for_waits_for_that_and_holds_up_nobody() -> None:
    places = TWO | {"small": place("small", 4, memory=2**30)}
    queue = waiting(places, task("needs memory", 1, memory=2**33), task("any", 2))
    assert told([*queue.place(places, {"large": 1}, {})]) == [("any", "small", 4)]
    assert told([*queue.place(places, {}, {})]) == [("needs memory", "large", 16)]
    assert not Waiting().add(task("too large", memory=2**40), places)


def test_a_machine_that_another_build_has_comes_last() -> None:
    ours, theirs = (
        Runs(step="x", key="a" * 64, seconds=1, jobs=9),
        Runs(step="y", key="b" * 64, seconds=1, jobs=14),
    )
    places = TWO | {"large": place("large", 16, runs=(ours, theirs))}
    others = others_have(places, {"a" * 64})
    assert others == {"small": 0, "large": 14}
    assert told([*waiting(places, task("one")).place(places, {}, others)]) == [("one", "small", 4)]


def test_what_is_removed_does_not_come() -> None:
    one, other = task("one", 1), task("other", 2)
    queue = waiting(TWO, one, other)
    assert queue.remove(one)
    assert not queue.remove(one)
    assert told([*queue.place(TWO, {}, {})]) == [("other", "large", 16)]


def test_a_machine_that_came_gets_what_waits_and_without_any_that_is_fit_it_goes_on_waiting() -> None:
    before = {"small": TWO["small"]}
    queue = waiting(before, task("one", memory=2**33))
    queue.renew({"tiny": place("tiny", 64, memory=2**20)})
    assert queue.fit() == {task("one", memory=2**33).id: ("small",)}
    assert told([*queue.place({"tiny": place("tiny", 64)}, {}, {})]) == []
    queue.renew(TWO)
    assert told([*queue.place(TWO, {}, {})]) == [("one", "large", 16)]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from([1, 2, 3, 64]), st.sampled_from([0, 8, 32]))),
    st.lists(st.tuples(st.sampled_from([1, 2, 16]), st.sampled_from([4, 8, 32])), min_size=1, max_size=5),
)
def test_no_machine_has_more_than_its_cores_and_none_is_idle_while_something_fits(
    wanted: list[tuple[int, int, int]], machines: list[tuple[int, int]]
) -> None:
    places = {str(at): place(str(at), cores, memory) for at, (cores, memory) in enumerate(machines)}
    queue, count = Waiting(), 0
    for at, (priority, cores, memory) in enumerate(wanted):
        count += queue.add(task(f"t{at}", priority, cores, memory), places)
    placed = [*queue.place(places, {}, {})]
    used = Counter[str]()
    for one in placed:
        assert places[one.where].memory >= one.task.step.resources.memory
        used[one.where] += one.cores
    assert all(used[name] <= one.cores for name, one in places.items())
    assert len(placed) + len(queue) == count
    # one step alone always has room on a machine that has nothing
    idle = {name for name in places if not used[name]}
    assert not any(idle & {*fit} for fit in queue.fit().values())
