"""The job server itself: how many tokens lie in its fifo, and what a step's place is worth."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.making import small_plan

from rocwright.execution.jobs import server as servers
from rocwright.execution.jobs.server import JobServer
from rocwright.home import Home
from rocwright.model.steps import Step

STEP = small_plan().steps[-1]


def wants(cores: int, name: str = "step") -> Step:
    resources = STEP.resources.model_copy(update={"cores": cores, "memory": 2**20})
    return STEP.model_copy(update={"name": name, "resources": resources})


def until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 10
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
        second = server.seat(wants(8, "second"), most=2)
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
