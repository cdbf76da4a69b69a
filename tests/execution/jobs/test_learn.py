from __future__ import annotations

import json
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwright.execution.jobs import learn
from rocwright.execution.jobs.learn import MOST_WEIGHT, Learnt, Peaks
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


def test_what_was_learnt_is_there_in_the_next_build(tmp_path: Path) -> None:
    home = Home(tmp_path)
    noted(home, *[300 * MIB] * 60)
    found = Learnt.load(home).peaks("part", "step", ProcessKind.COMPILE, 2 * GIB)
    assert 300 * MIB <= found.usual() < 380 * MIB
    assert Learnt.load(home).peaks("part", "step", ProcessKind.LINK, 2 * GIB).usual() == 2 * GIB


def test_few_that_are_known_leave_more_doubt_than_many(tmp_path: Path) -> None:
    few = noted(Home(tmp_path / "few"), GIB).peaks("part", "step", ProcessKind.COMPILE, GIB)
    many = noted(Home(tmp_path / "many"), *[GIB] * 100).peaks("part", "step", ProcessKind.COMPILE, GIB)
    assert GIB < many.most() < few.most() < 2 * GIB


def test_peaks_that_differ_leave_more_doubt_than_those_that_are_alike() -> None:
    alike, apart = Peaks([(GIB, 8.0)]), Peaks([(GIB, 4.0), (GIB // 8, 4.0)])
    assert alike.most() < apart.most()


def test_the_more_run_at_once_the_larger_the_next_may_be() -> None:
    peaks = Peaks([(700 * MIB, 3.0), (500 * MIB, 7.0)])
    two, three, four, many = (peaks.most(among=among) for among in (2, 3, 4, 64))
    assert two < three < four == many == peaks.most()


def test_one_large_among_many_is_reckoned_with_and_not_taken_for_usual(tmp_path: Path) -> None:
    found = noted(Home(tmp_path), *[100 * MIB] * 40, 3 * GIB).peaks(
        "part", "step", ProcessKind.COMPILE, 100 * MIB
    )
    assert found.most() >= 3 * GIB
    assert found.usual() < 250 * MIB
    assert found.usual(500 * MIB) >= 3 * GIB


@given(st.lists(st.tuples(st.integers(0, 2**40), st.floats(0.01, 100)), max_size=30), st.integers(0, 2**41))
def test_nothing_comes_to_less_than_it_holds(rows: list[tuple[int, float]], held: int) -> None:
    peaks = Peaks(rows)
    assert held <= peaks.usual(held) + 1
    assert held <= peaks.most(held)


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
    (sort,) = json.loads(Home(tmp_path).job_memory.read_text())["sorts"].values()
    assert [*sort["units"]] == ["1-1", "2-0", "2-1"]


def test_what_a_job_holds_on_average_is_by_the_time_for_which_it_was_held(tmp_path: Path) -> None:
    learnt = Learnt.load(Home(tmp_path))
    learnt.note("part", "step", ProcessKind.COMPILE, GIB, seconds=2, area=2 * 100 * MIB)
    learnt.note("part", "step", ProcessKind.COMPILE, GIB, seconds=8, area=8 * 200 * MIB)
    assert learnt.mean("part", "step", ProcessKind.COMPILE) == 180 * MIB
    learnt.save()
    assert Learnt.load(Home(tmp_path)).mean("part", "step", ProcessKind.COMPILE) == 180 * MIB


def test_checks_of_a_configure_step_tell_nothing_of_what_comes_after_it() -> None:
    learnt = Learnt()
    for _ in range(50):
        learnt.note("part", "step", ProcessKind.COMPILE, 20 * MIB, seconds=0.05)
    assert learnt.peaks("part", "step", ProcessKind.COMPILE, GIB).usual() == GIB
    learnt.note("part", "step", ProcessKind.COMPILE, 500 * MIB, seconds=5)
    assert learnt.peaks("part", "step", ProcessKind.COMPILE, GIB).most() > 600 * MIB


def test_old_builds_fade(tmp_path: Path) -> None:
    home = Home(tmp_path)
    noted(home, *[4 * GIB] * 20)
    for _ in range(6):
        noted(home, *[100 * MIB] * MOST_WEIGHT)
    assert Learnt.load(home).peaks("part", "step", ProcessKind.COMPILE, MIB).most() < GIB
    assert home.job_memory.stat().st_size < 1000


def test_what_no_build_had_for_a_year_is_dropped(tmp_path: Path) -> None:
    home = Home(tmp_path)
    noted(home, GIB)
    old = json.loads(home.job_memory.read_text())
    old["sorts"] = {"gone\tstep\tcompile": {"bins": {"8": 1.0}, "at": "2020-01-01"}} | old["sorts"]
    home.job_memory.write_text(json.dumps(old))
    noted(home, GIB)
    assert [*json.loads(home.job_memory.read_text())["sorts"]] == ["part\tstep\tcompile"]


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
    assert sum(sorts["a\tstep\tcompile"]["bins"].values()) == 20


def test_what_a_thread_notes_while_another_asks_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    learnt, noting = Learnt(), []

    def asked(rows: Iterable[tuple[int, float]], guess: int) -> Peaks:
        known = [*rows]
        noting.append(Thread(target=learnt.note, args=("part", "step", ProcessKind.COMPILE, 8 * GIB)))
        noting[-1].start()
        noting[-1].join(0.2)
        return Peaks(known, guess)

    monkeypatch.setattr(learn, "Peaks", asked)
    learnt.peaks("part", "step", ProcessKind.COMPILE, GIB)
    monkeypatch.undo()
    noting[0].join()
    assert learnt.peaks("part", "step", ProcessKind.COMPILE, GIB).usual() > GIB


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\0" * 100,
        b'{"format": 1, "sorts": {"a": {"bins": {"8": NaN}, "at": ""}}}',
        b'{"format": 1, "sorts": {"a": {"bins": {"999999": 1}, "at": ""}}}',
        b"[" * 100_000,
    ],
    ids=["empty", "zeros", "no-number", "huge", "deep"],
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
