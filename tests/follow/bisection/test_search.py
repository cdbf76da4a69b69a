"""The search for what fails together: right, minimal, and with few answers."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from rocwheel_samples.tables import each
from rocwright.follow.bisection.search import SearchResult, TrialAnswer, smallest


class World:
    """Changes of which `culprits` break only together; sets with one of `broken` tell nothing."""

    def __init__(self, culprits: frozenset[int], apart: tuple[frozenset[int], ...] = ()) -> None:
        self.culprits, self.apart = culprits, apart
        self.asked: list[frozenset[int]] = []

    def ask(self, tried: frozenset[int]) -> TrialAnswer:
        assert tried not in self.asked, "asked twice"
        self.asked.append(tried)
        if any(tried & group and not group <= tried for group in self.apart):
            return TrialAnswer.SKIP
        return TrialAnswer.BAD if self.culprits <= tried else TrialAnswer.GOOD


def search(count: int, world: World) -> SearchResult:
    return smallest(count, world.ask)


@each("culprit", range(12))
def test_one_of_twelve_takes_at_most_five_answers(culprit: int) -> None:
    world = World(frozenset({culprit}))
    found = search(12, world)
    assert found.blocks == (frozenset({culprit}),)
    assert found.certain
    assert len(world.asked) <= 5


@each("pair", list(combinations(range(12), 2)))
def test_two_of_twelve_take_at_most_nine(pair: tuple[int, int]) -> None:
    world = World(frozenset(pair))
    assert search(12, world).changes == frozenset(pair)
    assert len(world.asked) <= 9


@given(
    st.integers(1, 40).flatmap(
        lambda n: st.tuples(st.just(n), st.frozensets(st.integers(0, n - 1), min_size=1))
    )
)
def test_what_is_found_is_exactly_what_is_needed(case: tuple[int, frozenset[int]]) -> None:
    count, culprits = case
    found = search(count, World(culprits))
    assert found.changes == culprits
    assert found.certain


@given(st.data())
def test_changes_that_cannot_be_parted_are_found_as_one_block(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 20))
    start = data.draw(st.integers(0, count - 2))
    group = frozenset(range(start, data.draw(st.integers(start + 2, count))))
    culprit = data.draw(st.integers(0, count - 1))
    world = World(frozenset({culprit}), (group,))
    found = search(count, world)
    assert culprit in found.changes
    assert found.changes == (group if culprit in group else {culprit})
    assert found.certain == (culprit not in group)


def test_nothing_but_one_change_needs_no_answer() -> None:
    world = World(frozenset({0}))
    assert search(1, world).blocks == (frozenset({0}),)
    assert world.asked == []


def test_many_changes_are_halved() -> None:
    world = World(frozenset({777}))
    assert search(1000, world).changes == {777}
    assert len(world.asked) <= 11
