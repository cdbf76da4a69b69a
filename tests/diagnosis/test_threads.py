"""Failures of public threads: what is found in them may only become more."""

from __future__ import annotations

import tomllib

import pytest
from benchmarks.rows.diagnose_threads import BLIND, HALVES, THREADS, Judged, blind, false_alarms, threads

LEAST = {
    "written": (44, 44, 43),
    "once": (26, 26, 25),
    "second": (31, 31, 25),
    "third": (21, 21, 16),
    "fourth": (58, 58, 45),
    "fifth": (32, 32, 23),
    "sixth": (13, 13, 12),
    "seventh": (35, 35, 25),
    "eighth": (29, 29, 19),
    "ninth": (24, 24, 18),
    "tenth": (29, 30, 24),
    "eleventh": (14, 14, 12),
    "twelfth": (29, 29, 21),
    "thirteenth": (9, 9, 8),
    "fourteenth": (26, 27, 18),
    "fifteenth": (9, 9, 6),
    "sixteenth": (28, 28, 19),
    "seventeenth": (31, 31, 24),
    "eighteenth": (39, 39, 31),
    "nineteenth": (39, 40, 31),
    "twentieth": (37, 37, 26),
}
"""First errors found, those among three lines, right causes; threads.toml has what each half had at its
first look."""

MOST_WRONG = dict.fromkeys(HALVES, 0) | {
    "fifth": 1,
    "seventh": 1,
    "tenth": 2,
    "twelfth": 1,
    "sixteenth": 1,
    "nineteenth": 4,
    "twentieth": 2,
}


@pytest.fixture(params=HALVES)
def half(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_true_first_error_and_the_cause_are_found_as_often_as_before(half: str) -> None:
    judged = threads(half)
    found = (
        sum(one.first for one in judged),
        sum(one.three for one in judged),
        sum(one.right for one in judged),
    )
    assert all(now >= least for now, least in zip(found, LEAST[half], strict=True)), (found, _missed(judged))


def test_no_more_wrong_causes_are_named_than_before(half: str) -> None:
    wrong = [one.source for one in threads(half) if one.wrong]
    assert len(wrong) <= MOST_WRONG[half], wrong


def test_where_nothing_failed_nothing_is_told() -> None:
    assert false_alarms() == []


def test_no_thread_is_in_two_halves() -> None:
    sources = [one.source for half in HALVES for one in threads(half)]
    assert len(sources) == len(set(sources))
    assert len(sources) >= 90


def _missed(judged: list[Judged]) -> list[str]:
    return [one.source for one in judged if not one.first or (one.knows and not one.right)]


def test_what_was_found_blind_adds_up() -> None:
    looks = tomllib.loads(BLIND.read_text())["look"]
    for look in looks:
        assert len(look["threads"]) == len(set(look["threads"])) == look["of"]
        for first, three, right, wrong in (look["before"], look["look"], look["now"]):
            assert first <= look["of"] >= three
            assert right <= look["known"] <= look["of"]
            assert right + wrong <= look["of"]
    assert [one.name.rpartition("-")[2] for one in blind()] == ["first", "three", "cause", "wrong"]


def test_no_thread_was_looked_at_blind_that_the_knowledge_had_been_tried_on() -> None:
    tried = {thread["source"] for thread in tomllib.loads(THREADS.read_text())["thread"]}
    looks = tomllib.loads(BLIND.read_text())["look"]
    assert not tried & {thread for look in looks for thread in look["threads"]}
