"""The job server itself: how many tokens lie in its fifo, and what a step's place is worth."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.making import small_plan

from rocwright.execution.executor import Alone
from rocwright.execution.jobs import policy
from rocwright.execution.jobs import server as servers
from rocwright.execution.jobs.beside import Board
from rocwright.execution.jobs.join import CLIENTS, SHARES, tell_joined
from rocwright.execution.jobs.learn import Learnt
from rocwright.execution.jobs.policy import Decision
from rocwright.execution.jobs.processes import ProcessKind, Sight, StepProcess
from rocwright.execution.jobs.room import MemoryBudget
from rocwright.execution.jobs.server import JobServer, StepUsage
from rocwright.home import Home
from rocwright.model.steps import Step
from rocwright.sandbox import cgroup, state
from rocwright.sandbox.cgroup import Cgroup

pytestmark = pytest.mark.timing

STEP = small_plan().steps[-1]
MIB, GIB = 2**20, 2**30


def wants(cores: int, name: str = "step") -> Step:
    resources = STEP.resources.model_copy(update={"cores": cores, "memory": 2**20})
    return STEP.model_copy(update={"name": name, "resources": resources})


def until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 120
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()


def held(server: JobServer) -> int:
    return server._circulation.tokens.held()


@pytest.mark.parametrize("seats", [1, 2, 3])
def test_the_fifo_has_a_token_less_for_each_step_whose_first_process_needs_none(
    tmp_path: Path, seats: int
) -> None:
    with JobServer(Home(tmp_path), jobs=4) as server:
        for number in range(seats):
            server.small_seat(wants(1, f"step {number}"))
        assert until(lambda: server.decision.past.time is not None)
        assert until(lambda: held(server) == server.decision.tokens - seats), (held(server), server.decision)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_server_that_is_at_fault_leaves_the_tokens_that_there_would_be_without_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    with JobServer(Home(tmp_path), jobs=5) as server:
        assert until(lambda: held(server) == server.decision.tokens)
        monkeypatch.setattr(servers, "decide", fails)
        server.small_seat(wants(1))
        server.small_seat(wants(1, "other"))
        assert until(lambda: held(server) == 3)


def test_a_small_step_has_one_job_and_leaves_the_others_to_the_next(tmp_path: Path) -> None:
    with JobServer(Home(tmp_path), jobs=4, sharing=False) as server:
        small = server.small_seat(wants(8, "download"))
        assert (small.jobs, small.cap) == (1, 4)
        next_ = server.seat(wants(8))
        assert next_ is not None
        assert (next_.jobs, next_.cap) == (3, 4)
        small.close()
        next_.close()
        alone = server.seat(wants(8))
        assert alone is not None
        assert alone.jobs == 4


@pytest.mark.parametrize(("cores", "gets"), [(8, None), (3, 3), (2, 2)])
def test_a_step_waits_for_less_than_a_quarter_of_all_but_not_for_more_than_it_wants(
    tmp_path: Path, cores: int, gets: int | None
) -> None:
    with JobServer(Home(tmp_path), jobs=16, sharing=False) as server:
        assert server.seat(wants(13, "large")) is not None
        seat = server.seat(wants(cores))
        assert (seat and seat.jobs) == gets


def test_two_steps_that_want_a_place_at_once_halve_what_there_is(tmp_path: Path) -> None:
    with JobServer(Home(tmp_path), jobs=8, sharing=False) as server:
        first = server.seat(wants(8, "first"), waiting=2)
        assert first is not None
        assert first.jobs == 4
        second = server.seat(wants(8, "second"), limit=2)
        assert second is not None
        assert (second.jobs, second.cap) == (2, 2)


def test_a_step_that_ran_out_of_memory_begins_with_fewer_jobs_and_no_other_step_does(tmp_path: Path) -> None:
    large, other = wants(4, "large"), wants(4, "other")
    with JobServer(Home(tmp_path), jobs=4, sharing=False) as server:
        for _ in range(20):
            server.ran_out(large, 4, 2**50)
        for step, jobs in ((large, 1), (other, 4)):
            seat = server.seat(step)
            assert seat is not None
            assert seat.jobs == jobs
            seat.close()


def seen(
    kind: ProcessKind = ProcessKind.COMPILE,
    *,
    pid: int = 1,
    started: int = 1,
    step: str = "step",
    memory: int = MIB,
    parent: int = 0,
    threads: int = 1,
    paused: bool = False,
) -> StepProcess:
    return StepProcess(
        pid=pid,
        started=started,
        step=step,
        memory=memory,
        kind=kind,
        parent=parent,
        threads=threads,
        paused=paused,
        peak=memory,
    )


@pytest.fixture
def grouped(tmp_path: Path) -> Iterator[JobServer]:
    """A server of 64 MiB whose build has a cgroup of its own."""
    with JobServer(Home(tmp_path), jobs=4, memory=64 * MIB) as server:
        if server._group is None:
            pytest.skip("no cgroup can be made here")
        yield server


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobServer]:
    """A server of 64 MiB, which does not share, where no cgroup can be made."""
    monkeypatch.setattr(cgroup, "create_above", lambda name: None)
    with JobServer(Home(tmp_path), jobs=4, memory=64 * MIB, sharing=False) as server:
        yield server


def test_what_a_step_had_is_its_most_memory_its_pauses_and_the_bounds_of_what_was_allowed(
    tmp_path: Path,
) -> None:
    with JobServer(Home(tmp_path), jobs=4, sharing=False) as server:
        seat = server.small_seat(wants(1))
        assert seat.counts == 1
        seat.note([seen(), seen(ProcessKind.LINK), seen(paused=True), seen(ProcessKind.OTHER)], 6, 2.0)
        assert (seat.memory, seat.working, seat.counts) == (4 * MIB, 2, 2)
        seat.note([seen(paused=True), seen(paused=True)], 3, 0.5)
        assert (seat.memory, seat.working, seat.counts) == (2 * MIB, 0, 1)
        seat.note([], 5, 1.0)
        held = StepUsage(peak_memory=4 * MIB, paused_seconds=3.0, least=3, most=6)
        assert [seat.close(), seat.close()] == [held, held]


def test_a_step_whose_tools_are_no_clients_counts_as_all_of_its_jobs(tmp_path: Path) -> None:
    with JobServer(Home(tmp_path), jobs=4, sharing=False) as server:
        seat = server.seat(wants(3))
        assert seat is not None
        assert (seat.counts, seat.own) == (3, 3)
        seat.shares = True
        assert (seat.counts, seat.own) == (1, 0)


def test_what_a_step_told_in_the_folder_is_taken_in_and_stays(tmp_path: Path) -> None:
    with JobServer(Home(tmp_path), jobs=4) as server:
        seat, other = server.small_seat(wants(1)), server.small_seat(wants(1, "other"))
        seat.started(2**22 + 1)
        other.started(2**22 + 2)
        tell_joined(server.folder, 2**22 + 1, CLIENTS)
        assert until(lambda: seat.clients)
        assert not seat.shares
        tell_joined(server.folder, 2**22 + 1, SHARES)
        assert until(lambda: seat.shares)
        assert not other.clients and not other.shares


def test_steps_are_told_of_the_cgroup_of_the_build_where_there_is_one(grouped: JobServer) -> None:
    assert grouped.environment == {cgroup.ABOVE: grouped.folder.name}


def test_without_a_cgroup_the_limit_is_held_against_what_the_processes_have(alone: JobServer) -> None:
    assert alone.environment == {}
    room = alone._look(Sight(seen=(seen(memory=20 * MIB), seen(memory=30 * MIB))))
    assert (room.bound, room.total, room.used) == ("limit", 64 * MIB, 50 * MIB)


def test_the_room_is_that_of_the_cgroup_of_the_build(grouped: JobServer) -> None:
    assert grouped._group is not None
    group = str(grouped._group.folder)
    assert [grouped._look().bound, grouped._look(Sight()).bound] == [group, group]
    assert until(lambda: group in grouped.decision.past.foreign)


def test_the_policy_is_asked_with_what_may_run_and_the_processors_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []

    def decide(*words: Any) -> Decision:
        asked.append(words[6:8])
        return policy.decide(*words)

    monkeypatch.setattr(servers, "decide", decide)
    with JobServer(Home(tmp_path), jobs=4) as server:
        assert until(lambda: (4, os.cpu_count()) in asked)
        server.seat(wants(8), limit=3)
        assert until(lambda: (3, os.cpu_count()) in asked)


def test_what_the_kernel_told_is_kept_from_look_to_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = iter([40 * MIB, *[60 * MIB] * 3])
    with JobServer(Home(tmp_path), jobs=4, memory=64 * MIB, sharing=False) as server:
        monkeypatch.setattr(Cgroup, "used", lambda _: next(told))
        server._group = Cgroup(folder=tmp_path, path="/x", version=1)
        assert [server._look(Sight(seen=(seen(memory=20 * MIB),))).used // MIB for _ in range(2)] == [40, 60]
        # a process has gone, and the kernel has not yet added up
        assert server._look(Sight()).used == 40 * MIB
        server._group = None


def test_a_process_is_paused_before_others_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim is a file: to write it may take seconds on a busy disk, in which compilers grow."""
    done: list[str] = []
    monkeypatch.setattr(JobServer, "_pause", lambda *_: done.append("pause"))
    monkeypatch.setattr(Board, "say", lambda *_: done.append("say"))
    with JobServer(Home(tmp_path), jobs=4):
        assert until(lambda: len(done) > 1)
    assert done[:2] == ["pause", "say"]


def test_threads_that_could_hold_a_token_are_those_of_whom_started_no_other_but_the_first_of_a_step() -> None:
    make, first, second = seen(pid=1), seen(pid=2, parent=1, threads=3), seen(pid=3, parent=1, threads=2)
    other = seen(pid=4, step="other", threads=5)
    assert servers._could_hold([make, first, second, other]) == (3 + 2 - 1) + (5 - 1)
    assert servers._could_hold([]) == 0


def test_what_clients_started_is_theirs_as_is_what_that_started() -> None:
    shell, make = seen(pid=1), replace(seen(pid=2, parent=1), program="make")
    driver, compiler, sleep = seen(pid=3, parent=2), seen(pid=4, parent=3), seen(pid=5, parent=1)
    assert servers._started([shell, make, driver, compiler, sleep], frozenset({"make"})) == {3, 4}
    assert servers._started([replace(shell, parent=2), make], frozenset({"make"})) == {1, 2}


def test_only_what_compiles_or_links_in_a_known_step_is_learnt(tmp_path: Path) -> None:
    home = Home(tmp_path)
    ended = (seen(), seen(ProcessKind.OTHER), seen(ProcessKind.LTO), seen(ProcessKind.LINK, step="unknown"))
    with JobServer(home, jobs=4, sharing=False) as server:
        server._learn(Sight(ended=ended), {"step": "part"})
    known = json.loads(home.job_memory.read_text())["sorts"]
    assert sorted(known) == ["part\tstep\tcompile", "part\tstep\tlto"]


def test_a_step_that_ran_out_of_memory_is_known_to_take_twice_its_share_in_each_job(tmp_path: Path) -> None:
    home, by_hand = Home(tmp_path), Learnt()
    with JobServer(home, jobs=4, sharing=False) as server:
        server.ran_out(wants(4), 2, 3 * GIB)
    for _ in range(2):
        by_hand.note(STEP.component, "step", ProcessKind.COMPILE, 3 * GIB)
    known, expected = (
        learnt.peaks(STEP.component, "step", ProcessKind.COMPILE) for learnt in (Learnt.load(home), by_hand)
    )
    assert known.usual(0) == expected.usual(0) > GIB


def test_a_process_that_is_too_large_by_itself_is_said_once_and_kept_for_its_step(tmp_path: Path) -> None:
    said: list[str] = []
    with JobServer(Home(tmp_path), jobs=4, sharing=False, say=said.append) as server:
        seats = [server.small_seat(wants(1)), server.small_seat(wants(1, "other"))]
        room = MemoryBudget(total=2 * MIB, used=0)
        for pid, memory in ((7, 2 * MIB), (7, 3 * MIB), (8, 4 * MIB)):
            server._too_large(seen(pid=pid, memory=memory), room, seats)
    assert [line.split(" alone uses ")[1].split(",")[0] for line in said] == ["2.0 MiB", "4.0 MiB"]
    assert [seat.alone for seat in seats] == [Alone("compile", 4 * MIB, 2 * MIB), None]


@pytest.mark.parametrize("goes_on", [False, True])
def test_whom_the_server_paused_goes_on_when_it_is_left_and_whom_another_paused_does_not(
    tmp_path: Path, goes_on: bool
) -> None:
    with subprocess.Popen(["sleep", "100"]) as process:
        begun = state.start_time(process.pid)
        assert begun is not None
        one = seen(pid=process.pid, started=begun)

        def stopped() -> bool:
            return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

        with JobServer(Home(tmp_path), jobs=4) as server:
            server._pause(Decision(tokens=1, pause=(one,)))
            assert until(stopped)
            if goes_on:
                server._pause(Decision(tokens=1, resume=(one,)))
                assert until(lambda: not stopped())
                process.send_signal(signal.SIGSTOP)
                assert until(stopped)
        assert stopped() is goes_on
        process.kill()


def test_its_thread_has_a_name_and_keeps_no_process_from_ending(tmp_path: Path) -> None:
    with JobServer(Home(tmp_path), jobs=4):
        (thread,) = [one for one in threading.enumerate() if one.name == "job server"]
        assert thread.daemon
    assert not thread.is_alive()
