"""Builds at the same time: what each tells the others, and that all of them together fit."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.jobs_simulated import Compiler, drawn
from benchmarks.jobs_together import at_once
from tests.making import small_plan

from rocwheel_samples.tables import each
from rocwright.execution.jobs.beside import (
    CLAIM,
    NOBODY,
    TURN,
    Beside,
    Board,
    Claim,
    RunningCompiler,
    together,
)
from rocwright.execution.jobs.server import JobServer
from rocwright.home import Home
from rocwright.sandbox import state

MIB = 1024**2
SOME = Claim(
    jobs=3,
    memory=300 * MIB,
    promised=90 * MIB,
    running=(RunningCompiler(started=7, holds=100 * MIB, wants=5),),
)


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROCWRIGHT_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


@pytest.fixture
def boards(runtime: Path, tmp_path: Path) -> Iterator[tuple[Board, Board]]:
    one, two = (Board(tmp_path / "home", state.new_folder()) for _ in range(2))
    yield one, two
    one.close()
    two.close()


def test_each_build_sees_what_the_others_say_and_not_itself(boards: tuple[Board, Board]) -> None:
    one, two = boards
    one.say(SOME)
    assert one.look() == NOBODY
    seen = Beside(builds=1, jobs=3, memory=300 * MIB, promised=90 * MIB, running=SOME.running)
    with two.turn() as others:
        assert others == seen
    one.say(Claim())
    assert two.look() == NOBODY


def test_without_the_folder_a_build_goes_on_by_itself(boards: tuple[Board, Board], runtime: Path) -> None:
    """A user's runtime folder is emptied when they log out."""
    one, two = boards
    one.say(SOME)
    shutil.rmtree(runtime)
    assert two.look() == NOBODY
    two.say(SOME)


def test_a_build_that_is_gone_says_nothing_any_more(boards: tuple[Board, Board], runtime: Path) -> None:
    one, two = boards
    one.say(SOME)
    [left] = runtime.glob(f"*/{CLAIM}")
    # of a process that there never was, and of this one's number at another time
    for pid, start in ((2**22 + 1, 1), (os.getpid(), 1)):
        words = left.parent.name.split("-")
        gone = runtime / "-".join([words[0], str(pid), str(start), "1"])
        gone.mkdir()
        (gone / CLAIM).write_text(left.read_text())
    assert two.look().builds == 1


def test_what_a_killed_build_said_goes_with_its_folder(runtime: Path, tmp_path: Path) -> None:
    """Whoever outlives it removes that."""
    folder = state.new_folder()
    board = Board(tmp_path / "home", folder)
    board.say(SOME)
    assert [one.parent for one in runtime.glob(f"*/{CLAIM}")] == [folder]
    state.dispose(folder)
    assert [one.name for one in runtime.iterdir()] == [TURN]
    board.close()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"jobs": -1}',
        '{"jobs": "x"}',
        '{"more": 1}',
        '{"jobs": 1, "memory": 1e400}',
        "x" * 2**17,
    ],
)
def test_what_is_no_claim_counts_for_nothing(boards: tuple[Board, Board], runtime: Path, text: str) -> None:
    one, two = boards
    one.say(SOME)
    [file] = runtime.glob(f"*/{CLAIM}")
    file.write_text(text)
    assert two.look() == NOBODY


def test_one_that_is_stopped_in_its_turn_holds_up_nobody(boards: tuple[Board, Board], runtime: Path) -> None:
    one, two = boards
    one.say(SOME)
    stopped = os.open(runtime / TURN, os.O_RDWR)
    try:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        with two.turn() as others:
            assert others.builds == 1
    finally:
        os.close(stopped)


def test_builds_with_another_home_are_not_seen(boards: tuple[Board, Board], tmp_path: Path) -> None:
    boards[0].say(SOME)
    other = Board(tmp_path / "elsewhere", state.new_folder())
    assert other.look() == NOBODY
    other.close()


def test_a_turn_is_one_builds_at_a_time(boards: tuple[Board, Board], runtime: Path) -> None:
    other = os.open(runtime / TURN, os.O_RDWR)
    try:
        with boards[0].turn(), pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(other)


def test_what_is_left_is_taken_and_no_build_has_less_than_its_share() -> None:
    assert NOBODY.most(8, 8) == 8
    assert Beside(builds=1, jobs=1).most(8, 8) == 7
    assert Beside(builds=1, jobs=8).most(8, 8) == 4
    assert Beside(builds=2, jobs=16).most(8, 8) == 3
    assert Beside(builds=40, jobs=40).most(2, 2) == 1
    assert Beside(builds=1, jobs=4).most(4, 16) == 4


def test_a_build_that_runs_nothing_takes_no_share() -> None:
    assert together([Claim(promised=5), SOME]).builds == 1


@each("seed", [4, 13, 21])
def test_two_builds_at_once_fit_where_they_tell_each_other(seed: int) -> None:
    """Of these, both are lost for memory where neither knows of the other."""
    work = drawn(seed)
    half = len(work.compilers) // 2
    builds = [work.compilers[:half], work.compilers[half:]]
    assert any(told.killed for told in at_once(builds, work.memory, work.cores, tells=False))
    told = at_once(builds, work.memory, work.cores)
    assert [(one.killed, one.stuck) for one in told] == [(False, False)] * 2
    assert [one.finished for one in told] == [len(one) for one in builds]


@each(("memory", "late"), [(499, 0.0), (559, 0.5), (604, 0.0), (649, 0.5), (679, 0.0)])
def test_of_two_builds_that_know_nothing_the_one_that_is_nearer_to_its_end_goes_on(
    memory: int, late: float
) -> None:
    """Each compiler was thought to want as much again as it held: the larger stopped for the smaller, and
    both filled the machine."""
    units = [Compiler(329 * MIB, 12, late)] * 3
    told = at_once([units, units], memory * MIB, 2, apart=0.3)
    assert [(one.killed, one.stuck, one.finished) for one in told] == [(False, False, 3)] * 2


@pytest.mark.parametrize("seed", [21, 37])
def test_two_builds_that_hardly_fit_take_turns_and_none_waits_for_ever(seed: int) -> None:
    """Each once held that it was the other's turn."""
    work = drawn(seed)
    half = len(work.compilers) // 2
    told = at_once([work.compilers[:half], work.compilers[half:]], work.memory, work.cores)
    assert [(one.killed, one.stuck) for one in told] == [(False, False)] * 2


def test_a_server_has_what_another_build_leaves_and_says_nothing_when_it_is_over(
    runtime: Path, tmp_path: Path
) -> None:
    home = Home(tmp_path / "home")
    other = Board(home.path, state.new_folder())
    other.say(Claim(jobs=6))
    with JobServer(home, jobs=8) as server:
        step = small_plan().steps[-1]
        resources = step.resources.model_copy(update={"cores": 64, "memory": 1})
        seat = server.seat(step.model_copy(update={"resources": resources}))
        cores = max(os.cpu_count() or 1, 8)
        assert seat is not None
        assert seat.jobs <= min(8, max(-(-cores // 2), cores - 6))
        assert seat.cap == 8  # once the other has ended it may have all
        end = time.monotonic() + 60
        while other.look().builds == 0 and time.monotonic() < end:
            time.sleep(0.05)
        assert other.look().jobs == 1
    assert other.look() == NOBODY
    other.close()
    assert [path.parent for path in runtime.glob(f"*/{CLAIM}")] == []
