"""A few of the kills, full disks and flipped bits that `make reliability` tries by the hundred."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from tests.reliability.disks import filled
from tests.reliability.flips import KINDS, flipped
from tests.reliability.kills import killed
from tests.reliability.subject import Subject, make_subject

from rocwright.sources.bases.roots import remove_tree

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    folder = tmp_path_factory.mktemp("reliability")
    yield make_subject(folder / "subject")
    remove_tree(folder)


@pytest.mark.parametrize("count", [4, pytest.param(12, marks=pytest.mark.nightly)])
def test_what_is_killed_at_any_moment_loses_nothing(subject: Subject, count: int) -> None:
    kills = list(killed(subject, count, random.Random(1)))
    assert [kill for kill in kills if kill.wrong] == []
    assert {kill.what for kill in kills} == {"build", "a process of a build", "verify", "serve"}
    assert sum(kill.in_time for kill in kills) >= count // 2


@pytest.mark.nightly
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_disk_that_is_full_at_any_point_loses_nothing(subject: Subject) -> None:
    points = list(filled(subject, 4, random.Random(1)))
    assert [one for one in points if one.wrong] == []
    assert "told" in {one.ended for one in points}


@pytest.mark.parametrize(
    "kind",
    ["blob", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in KINDS if kind != "blob")],
)
def test_a_flipped_bit_makes_nothing_wrong(subject: Subject, kind: str) -> None:
    (flip,) = flipped(subject, kind, 1, random.Random(f"1 {kind}"))
    assert flip.outcome in ("noticed", "harmless"), flip
    if kind in ("blob", "record"):
        assert flip.outcome == "noticed", flip
