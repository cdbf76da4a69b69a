from __future__ import annotations

import json
from multiprocessing import get_context
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwright.execution.jobs import learn
from rocwright.execution.jobs.learn import MOST_COUNT, Learnt, Peaks
from rocwright.execution.jobs.processes import ProcessKind
from rocwright.home import Home

MIB = 1024**2
GIB = 1024**3


def noted(home: Home, *peaks: int, kind: ProcessKind = ProcessKind.COMPILE) -> Learnt:
    learnt = Learnt.load(home)
    for peak in peaks:
        learnt.note("part", "step", kind, peak)
    learnt.save()
    return learnt


def peaks_of(learnt: Learnt, kind: ProcessKind = ProcessKind.COMPILE) -> Peaks:
    return learnt.peaks("part", "step", kind)


def test_what_was_learnt_is_there_in_the_next_build(tmp_path: Path) -> None:
    home = Home(tmp_path)
    noted(home, *[300 * MIB] * 60)
    assert peaks_of(Learnt.load(home)).usual(2 * GIB) == 300 * MIB
    assert peaks_of(Learnt.load(home), ProcessKind.LINK).usual(2 * GIB) == 2 * GIB


def test_few_that_are_known_leave_more_doubt_than_many(tmp_path: Path) -> None:
    few, many = (peaks_of(noted(Home(tmp_path / str(count)), *[GIB] * count)) for count in (1, 100))
    assert GIB < many.most(0, 8) < few.most(0, 8) < 2 * GIB


def test_peaks_that_differ_leave_more_doubt_than_those_that_are_alike() -> None:
    alike, apart = (Peaks(count=8, total=total, largest=GIB) for total in (8 * GIB, 4.5 * GIB))
    assert alike.most(0, 4) < apart.most(0, 4)


def test_the_more_run_at_once_the_larger_the_next_may_be() -> None:
    peaks = Peaks(count=10, total=5600 * MIB, largest=700 * MIB)
    two, three, six, many = (peaks.most(0, among) for among in (2, 3, 6, 64))
    assert two < three < six == many


def test_one_large_among_many_is_reckoned_with_and_not_taken_for_usual(tmp_path: Path) -> None:
    peaks = peaks_of(noted(Home(tmp_path), *[100 * MIB] * 40, 3 * GIB))
    assert peaks.most(0, 4) >= 3 * GIB
    assert peaks.usual(0) < 250 * MIB


@given(st.lists(st.tuples(st.integers(0, 2**40), st.floats(0, 2)), max_size=30), st.integers(0, 2**41))
def test_nothing_comes_to_less_than_it_holds(rows: list[tuple[int, float]], held: int) -> None:
    learnt = Learnt()
    for peak, seconds in rows:
        learnt.note("part", "step", ProcessKind.COMPILE, peak, seconds=seconds)
    assert held <= peaks_of(learnt).most(held, 8)


def test_a_job_is_known_by_its_name_in_the_next_build_and_the_last_build_counts(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for peak in (900 * MIB, 300 * MIB):
        learnt = Learnt.load(home)
        learnt.note("part", "step", ProcessKind.COMPILE, peak, unit="a")
        learnt.note("part", "step", ProcessKind.COMPILE, peak // 2, unit="a")
        learnt.save()
    found = Learnt.load(home)
    assert found.unit("part", "step", ProcessKind.COMPILE, "a") == 300 * MIB
    assert found.unit("part", "step", ProcessKind.COMPILE, "b") == 0
    assert found.unit("part", "other", ProcessKind.COMPILE, "a") == 0


def test_names_that_are_kept_are_bounded_and_the_latest_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learn, "MOST_UNITS", 3)
    for build in range(3):
        learnt = Learnt.load(Home(tmp_path))
        for number in range(2):
            learnt.note("part", "step", ProcessKind.COMPILE, GIB, unit=f"{build}-{number}")
        learnt.save()
    (units,) = json.loads(Home(tmp_path).job_memory.read_text())["units"].values()
    assert [*units] == ["1-1", "2-0", "2-1"]


def test_what_a_job_holds_on_average_is_by_the_time_for_which_it_was_held(tmp_path: Path) -> None:
    learnt = Learnt.load(Home(tmp_path))
    learnt.note("part", "step", ProcessKind.COMPILE, GIB, seconds=2, area=2 * 100 * MIB)
    learnt.note("part", "step", ProcessKind.COMPILE, GIB, seconds=8, area=8 * 200 * MIB)
    assert peaks_of(learnt).mean() == 180 * MIB
    learnt.save()
    assert peaks_of(Learnt.load(Home(tmp_path))).mean() == 180 * MIB


def test_checks_of_a_configure_step_tell_nothing_of_what_comes_after_it() -> None:
    learnt = Learnt()
    for _ in range(50):
        learnt.note("part", "step", ProcessKind.COMPILE, 20 * MIB, seconds=0.05)
    assert peaks_of(learnt).usual(GIB) == GIB
    learnt.note("part", "step", ProcessKind.COMPILE, 500 * MIB, seconds=5)
    assert 500 * MIB < peaks_of(learnt).most(0, 8) < GIB


def test_old_builds_fade(tmp_path: Path) -> None:
    home = Home(tmp_path)
    noted(home, *[4 * GIB] * 20)
    for _ in range(6):
        noted(home, *[100 * MIB] * MOST_COUNT)
    assert peaks_of(Learnt.load(home)).most(0, 8) < GIB
    assert home.job_memory.stat().st_size < 1000


def test_sorts_that_are_kept_are_bounded_and_the_latest_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learn, "MOST_SORTS", 2)
    for step in ("a", "b", "a", "c"):
        learnt = Learnt.load(Home(tmp_path))
        learnt.note("part", step, ProcessKind.COMPILE, GIB, unit="unit")
        learnt.save()
    content = json.loads(Home(tmp_path).job_memory.read_text())
    assert [*content["sorts"]] == [*content["units"]] == ["part\ta\tcompile", "part\tc\tcompile"]


def _note_many(path: str, component: str) -> None:
    for _ in range(10):
        learnt = Learnt.load(Home(Path(path)))
        learnt.note(component, "step", ProcessKind.COMPILE, GIB)
        learnt.save()


def test_two_builds_at_once_lose_nothing(tmp_path: Path) -> None:
    spawn = get_context("spawn")
    both = [spawn.Process(target=_note_many, args=(str(tmp_path), name)) for name in ("a", "a")]
    for one in both:
        one.start()
    for one in both:
        one.join()
    sorts = json.loads(Home(tmp_path).job_memory.read_text())["sorts"]
    assert sorts["a\tstep\tcompile"]["count"] == 20


def test_what_threads_note_at_once_is_not_lost() -> None:
    learnt = Learnt()

    def note() -> None:
        for _ in range(50):
            learnt.note("part", "step", ProcessKind.COMPILE, GIB)

    threads = [Thread(target=note) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert peaks_of(learnt).count == 200


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\0" * 100,
        b'{"format": 2, "sorts": {"a": {"count": NaN}}}',
        b'{"format": 1, "sorts": {}}',
        b"[" * 100_000,
    ],
    ids=["empty", "zeros", "no-number", "older", "deep"],
)
def test_a_damaged_file_is_set_aside_and_said(tmp_path: Path, damage: bytes) -> None:
    home = Home(tmp_path)
    home.job_memory.write_bytes(damage)
    learnt = Learnt.load(home)
    assert learnt.set_aside is not None
    assert learnt.set_aside.read_bytes() == damage
    learnt.note("part", "step", ProcessKind.COMPILE, GIB)
    learnt.save()
    assert Learnt.load(home).set_aside is None
