"""The time left moves with the clock, whatever the counter does."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwright.execution.pace import FEWEST, MOST_KEPT, VAGUE, Calm, Marks, left_text, seconds_left


def test_half_of_what_was_counted_takes_as_long_again() -> None:
    assert seconds_left(50, 100, 600, 0, 0) == 600


def test_what_was_expected_weighs_less_the_more_is_done() -> None:
    """By the counter it is 3 times 50 s, 50 s and 1 s; by the last time always 900 s."""
    assert [round(seconds_left(done, 100, 50, 900, 0)) for done in (25, 50, 99)] == [712, 475, 10]


def test_what_begins_slower_than_expected_soon_goes_by_what_is_seen() -> None:
    """It once said "8 min 07 s left" of six hours: three things of 1,199 after 74 s, and 12 after 234 s."""
    told = [seconds_left(done, 1199, at - 37, 527 - at, 0, first=1) for done, at in ((3, 74), (12, 234))]
    assert told[0] == pytest.approx(18.5 * 1196, rel=0.05)
    assert told[1] == pytest.approx(197 / 11 * 1187, rel=0.05)


def test_somewhat_slower_than_expected_is_no_reason_to_doubt() -> None:
    """A tenth is done in 150 s: 1,350 s more by the counter, 900 s more as expected."""
    assert seconds_left(100, 1000, 150, 900, 0) == pytest.approx(0.1 * 1350 + 0.9 * 900)
    assert seconds_left(100, 1000, 300, 900, 0) > 0.5 * 2700 + 0.5 * 900


def test_what_came_from_a_cache_at_first_is_no_pace_for_the_rest() -> None:
    """It once said "4 min left" of 45: 1,366 of 1,906 things in 90 s, and then 10 a minute."""
    marks = Marks()
    for number in range(1366):
        marks.note(number * 90 / 1366, number + 1)
    for number in range(1, 41):
        marks.note(90 + 6 * number, 1366 + number)
        if number == FEWEST:
            early = marks.each(0)
    assert early is not None
    assert marks.each(0) == pytest.approx(6)
    assert early == pytest.approx(6, rel=0.3)
    assert seconds_left(1406, 1906, 330, 200, 0, unit_time=6) == pytest.approx(3000, rel=0.25)


def test_one_long_thing_alone_is_no_pace() -> None:
    marks = Marks()
    for number in range(100):
        marks.note(number / 10, number)
    marks.note(70, 100)
    assert marks.each(0) == pytest.approx(62 / FEWEST, rel=0.05)


def test_few_things_and_none_have_no_pace_of_late() -> None:
    marks = Marks()
    assert marks.each(0) is None
    for number in range(FEWEST):
        marks.note(number, number)
        assert marks.each(0) is None


@given(paces=st.lists(st.floats(0.001, 100), min_size=1, max_size=2000))
def test_few_marks_are_kept_and_the_pace_is_one_that_was_seen(
    paces: list[float],
) -> None:
    marks, now = Marks(), 0.0
    for number, pace in enumerate(paces, 1):
        now += pace
        marks.note(now, number)
    each = marks.each(0)
    assert len(marks._kept) <= MOST_KEPT
    assert each is None or 0.99 * min(paces) <= each <= 1.01 * max(paces)


def test_it_falls_with_the_clock_until_the_next_thing_is_due() -> None:
    """A thing takes 12 s."""
    assert [seconds_left(50, 100, 600, 0, idle) for idle in (0, 5, 12)] == [600, 595, 588]


def test_it_rises_with_the_clock_while_nothing_gets_done() -> None:
    """It once said "1 min 16 s left" for 15 minutes, under load: 5 of 366 things were to come."""
    told = [seconds_left(361, 366, 4000, 300, idle) for idle in (0, 60, 300, 900)]
    assert told[0] == pytest.approx(59, abs=1)
    assert told[1] < told[2] < told[3]
    assert told[3] > 900


def test_a_step_that_goes_on_when_all_is_counted_takes_as_long_again_as_it_has_since() -> None:
    assert [seconds_left(100, 100, 600, 50, idle) for idle in (0, 30)] == [0, 30]


@given(
    done=st.integers(3, 5000),
    more=st.integers(0, 5000),
    counting=st.floats(0, 10**6),
    rest=st.floats(-(10**6), 10**6),
    idle=st.floats(0, 10**5),
    later=st.floats(1, 10**5),
)
def test_it_is_never_negative_and_never_stands_still(
    done: int, more: int, counting: float, rest: float, idle: float, later: float
) -> None:
    one, two = (seconds_left(done, done + more, counting, rest, at) for at in (idle, idle + later))
    assert one >= -1e-6
    turns = abs(two - one) == pytest.approx(0, abs=1e-6)
    due = seconds_left(done, done + more, counting, rest, 0) / more if more else 0
    # only where it fell as far as it rose again
    assert not turns or idle < due < idle + later


# as it is shown


def test_estimates_that_jump_under_load_are_shown_without_jumps() -> None:
    """A build once showed 6, 84, 3 and 33 min left within five minutes."""
    calm = Calm()
    shown = [calm.follow((360, 5040, 180, 1980)[second // 75], second) for second in range(300)]
    minutes = [shown[second] / 60 for second in (0, 74, 149, 224, 299)]
    assert max(minutes) < 10
    assert all(later < 1.5 * earlier and earlier - 1.25 < 2 * later for earlier, later in pairwise(minutes))


def test_an_estimate_that_is_right_is_shown_as_it_is() -> None:
    calm = Calm()
    assert [calm.follow(600 - second, second) for second in (0, 20, 599)] == [600, 580, 1]


def test_what_was_shown_far_too_small_gets_right_in_time() -> None:
    """Of 84 min it showed 6 at first."""
    calm = Calm()
    calm.follow(360, 0)
    shown = [calm.follow(84 * 60 - second, second) for second in range(1, 1001)]
    assert shown[-1] == pytest.approx(84 * 60 - 1000)


@given(estimates=st.lists(st.tuples(st.floats(0, 10**6), st.floats(0, 100)), min_size=2, max_size=50))
def test_what_is_shown_is_never_negative_and_moves_no_faster_than_it_may(
    estimates: list[tuple[float, float]],
) -> None:
    calm, clock, shown = Calm(), 0.0, -1.0
    for estimate, passed in estimates:
        clock += passed
        earlier, shown = shown, calm.follow(estimate, clock)
        assert shown >= 0
        if earlier >= 0:
            assert abs(shown - earlier) <= passed * (2.25 + earlier / 300) + 1e-3


def test_the_time_left_is_a_range_until_a_tenth_is_done() -> None:
    shares = (0.0, 0.02, 0.05, 0.09, VAGUE, 1.0)
    assert [left_text(2400, share) for share in shares] == [
        "20 to 80 min left",
        "22 to 72 min left",
        "27 to 60 min left",
        "36 to 44 min left",
        "40 min 00 s left",
        "40 min 00 s left",
    ]
    assert [left_text(seconds, 0) for seconds in (0, 1, 40, 4 * 3600)] == [
        "1 s left",
        "1 to 2 s left",
        "20 to 80 s left",
        "2 to 8 h left",
    ]
