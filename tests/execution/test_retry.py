"""Which steps are tried once more, and with what."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.making import small_plan

from rocbase.errors import CompileError, FailureClass, OutOfMemoryError
from rocwheel_samples.tables import each
from rocwright.execution.executor import Alone
from rocwright.execution.jobs.learn import Learnt
from rocwright.execution.jobs.processes import ProcessKind
from rocwright.execution.jobs.server import JobServer
from rocwright.execution.killed import killed
from rocwright.execution.retry import Tries, again_line
from rocwright.home import Home
from rocwright.records.model import StepRun
from rocwright.sandbox import memory

STEP = small_plan().steps[-1]
SHORT = OutOfMemoryError("no memory")


def failed(jobs: int) -> StepRun:
    return StepRun(name=STEP.name, key=STEP.key, outcome="failed", jobs=jobs, memory=2**30, peak_memory=2**29)


def test_only_a_want_of_memory_is_tried_again_and_only_once() -> None:
    tries = Tries()
    assert not tries.grant(failed(8), CompileError("no semicolon"))
    assert not tries.second(STEP)
    assert tries.grant(failed(8), SHORT)
    assert tries.second(STEP)
    assert not tries.grant(failed(4), SHORT)


@each(("had", "most", "gets"), [(8, 8, 4), (3, 8, 1), (1, 8, 1), (8, 2, 2)])
def test_a_second_try_has_half_the_jobs_at_least_one_and_no_more_than_there_are(
    had: int, most: int, gets: int
) -> None:
    tries = Tries()
    assert tries.jobs(STEP, most) == most
    tries.grant(failed(had), SHORT)
    assert tries.jobs(STEP, most) == gets


def test_what_is_said_names_jobs_limit_and_what_was_taken() -> None:
    assert again_line(failed(8)) == (
        f"  {STEP.name}: ran out of memory with 8 jobs and at most 1.00 GiB (it took 512.0 MiB); "
        "retrying it alone with 4 jobs"
    )


def test_a_second_try_that_fails_otherwise_tells_its_own_error() -> None:
    tries, other = Tries(), CompileError("no semicolon")
    tries.grant(failed(2), SHORT)
    assert tries.told(failed(1), other) is other


def test_where_one_process_alone_was_too_large_there_is_no_second_try() -> None:
    tries, alone = Tries(), Alone(ProcessKind.COMPILE, 2**29, 2**29 + 2**20)
    assert not tries.grant(failed(8), SHORT, alone)
    told = tries.told(failed(8), SHORT, alone)
    assert told.message == "a single process needs more memory than the whole build may use"
    assert "a single process (compile) had taken 512.0 MiB of at most 513.0 MiB" in told.cause
    assert "raise --memory" in told.next_step
    assert told.remedy_unavailable
    assert "--jobs" not in told.next_step + told.remedy


def test_a_process_that_was_too_large_here_is_tried_where_a_machine_has_more() -> None:
    tries, alone = Tries(), Alone(ProcessKind.COMPILE, 2**29, 2**30)
    assert not tries.grant(failed(8), SHORT, alone, 2**30)
    assert tries.memory(STEP) == 0
    assert tries.grant(failed(8), SHORT, alone, 2**31)
    assert tries.memory(STEP) == 2 * 2**30


def test_what_jobs_wanted_when_memory_ran_out_is_learnt(home: Home) -> None:
    with JobServer(home, jobs=4, sharing=False) as server:
        server.ran_out(STEP, 4, 8 * 2**30)
        server.ran_out(STEP, 2, 8 * 2**30)
    peaks = Learnt.load(home).peaks(STEP.component, STEP.name, ProcessKind.COMPILE)
    assert peaks.usual(2**30) == pytest.approx((4 * 4 + 2 * 8) / 6 * 2**30, rel=0.1)


@pytest.mark.parametrize(
    ("code", "before", "failure", "cause"),
    [
        (-9, 3, FailureClass.INTERRUPTED, "its counters are for the whole machine, so that is uncertain"),
        (-9, 4, FailureClass.INTERRUPTED, "the kernel's counters say that it did not"),
        (-9, None, FailureClass.INTERRUPTED, "its counters are for the whole machine, so that is uncertain"),
        (1, 3, FailureClass.INTERNAL, "a fault of rocwright"),
    ],
    ids=["somewhere by the kernel", "by somebody", "by whom, nobody counts", "not killed"],
)
def test_a_kill_somewhere_on_the_machine_is_not_taken_for_the_steps_own(
    code: int,
    before: int | None,
    failure: FailureClass,
    cause: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "vmstat").write_text("oom_kill 4\n")
    monkeypatch.setattr(memory, "VMSTAT", tmp_path / "vmstat")
    told = killed(code, before)
    assert told.failure is failure
    assert cause in told.cause
