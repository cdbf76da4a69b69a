"""Whether a figure is worse than another, and not by chance."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rocwright.records.model import Better, Figure
from rocwright.verify.bench.statistics import comparable, difference, middle, pairs, slower, spread

VALUES = st.lists(st.floats(0.01, 1e9), min_size=1, max_size=9).map(tuple)
BETTER: st.SearchStrategy[Better] = st.sampled_from(("higher", "lower"))


def figure(*values: float, better: Better = "higher", device: str = "cpu", name: str = "prompt") -> Figure:
    return Figure(name=name, unit="tokens/s", better=better, values=values, device=device)


@given(VALUES)
def test_the_middle_lies_among_the_values_and_the_spread_is_never_negative(values: tuple[float, ...]) -> None:
    assert min(values) <= middle(values) <= max(values)
    assert spread(values) >= 0


@given(VALUES, BETTER)
def test_what_is_the_same_is_never_worse(values: tuple[float, ...], better: Better) -> None:
    one = figure(*values, better=better)
    assert difference(one, one) == (0, False)
    assert slower([one], [one], 0) == []


@given(VALUES, VALUES, BETTER)
def test_one_of_two_is_worse_or_both_are_equal(
    one: tuple[float, ...], other: tuple[float, ...], better: Better
) -> None:
    there = difference(figure(*one, better=better), figure(*other, better=better))
    back = difference(figure(*other, better=better), figure(*one, better=better))
    assert there.certain == back.certain
    assert (there.worse > 0) == (back.worse < 0)


@given(st.floats(1, 1e6), st.floats(1.06, 10))
def test_lower_is_better_turns_it_round(value: float, times: float) -> None:
    fast, slow = figure(value, better="lower"), figure(value * times, better="lower")
    assert difference(fast, slow).beyond(5)
    assert not difference(slow, fast).beyond(0)


def test_a_loss_within_three_spreads_is_chance() -> None:
    wide = figure(90, 95, 100, 105, 110)
    assert not difference(wide, figure(80, 85, 90, 95, 100)).beyond(5)
    assert difference(wide, figure(60, 65, 70, 75, 80)).beyond(5)


def test_a_certain_loss_under_the_percentage_is_let_through() -> None:
    narrow = figure(100, 100.1, 100.2, 100.1, 100)
    less = figure(96, 96.1, 96.2, 96.1, 96)
    assert difference(narrow, less).certain
    assert not difference(narrow, less).beyond(5)
    assert difference(narrow, less).beyond(3)


def test_only_the_same_on_the_same_device_is_compared() -> None:
    here, there = figure(100), figure(10, device="llvmpipe (LLVM 22)")
    assert not comparable(here, there)
    assert pairs([here], [there]) == []
    assert slower([here], [there], 5) == []
    told = slower([here, there], [figure(80), there], 5)
    assert told == ["prompt is 20.0 % worse on cpu"]
