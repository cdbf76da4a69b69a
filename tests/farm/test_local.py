"""The executor of this machine, asked by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop
from tests.execution.conftest import workshop as workshop
from tests.execution.test_scheduler import processes

from rocbase.errors import FailureClass
from rocwright.execution.disk import volumes
from rocwright.execution.executor import Ended, Event, Line, Queued, Sampled, Started, Task
from rocwright.execution.options import BuildOptions, StepOptions
from rocwright.farm import local
from rocwright.farm.local import LocalExecutor
from rocwright.model.steps import Step

pytestmark = pytest.mark.timing


def executor(workshop: Workshop, jobs: int = 1) -> LocalExecutor:
    return LocalExecutor(workshop.home, BuildOptions(jobs=jobs, engine=workshop.engine), lambda _: None)


def task(workshop: Workshop, step: Step, priority: int = 0) -> Task:
    options = StepOptions(engine=workshop.engine)
    return Task(step=step, store=workshop.store.url, jobs=4, priority=priority, options=options)


def take(running: LocalExecutor, holds: Callable[[Event], bool]) -> list[Event]:
    """The events up to the first for which that holds."""
    found: list[Event] = []
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for event in running.events():
            found.append(event)
            if holds(event):
                return found
    raise AssertionError(found)


def test_each_event_of_a_step_comes_in_its_place(workshop: Workshop) -> None:
    one = task(workshop, workshop.step("echo said", "sleep 1.2", "touch $OUT/result"))
    with executor(workshop) as running:
        running.submit(one)
        told = take(running, lambda event: isinstance(event, Ended))
    assert all(event.task == one for event in told)
    assert isinstance(told[0], Queued)
    assert isinstance(told[1], Started)
    assert (told[1].jobs, told[1].memory is None) == (1, False)
    assert {type(event) for event in told[2:-1]} == {Line, Sampled}
    assert len([event for event in told if isinstance(event, Line) and event.text == "said"]) == 1
    last = told[-1]
    assert isinstance(last, Ended)
    assert last.record is not None
    assert (last.record.key, last.error, last.least_jobs) == (one.step.key, None, 1)


def test_what_waits_starts_by_its_priority_whoever_came_first(workshop: Workshop) -> None:
    tasks = [
        task(workshop, workshop.step(f"true {number}", "touch $OUT/result"), -number) for number in range(3)
    ]
    with executor(workshop) as running:
        for one in tasks:
            running.submit(one)
        begun: list[Event] = []
        for _ in tasks:
            told = take(running, lambda event: isinstance(event, Ended))
            begun += [event for event in told if isinstance(event, Started)]
    assert [one.task.priority for one in begun] == [-2, -1, 0]


def test_what_is_cancelled_ends_whether_it_runs_or_waits(workshop: Workshop) -> None:
    runs = task(workshop, workshop.step("echo begun", "sleep 71.7"))
    waits = task(workshop, workshop.step("true", "touch $OUT/result"), 1)
    with executor(workshop) as running:
        running.submit(runs)
        running.submit(waits)
        take(running, lambda event: isinstance(event, Line) and event.text == "begun")
        running.cancel(runs)
        running.cancel(waits)
        told = {
            event.task.id: event
            for _ in (runs, waits)
            for event in take(running, lambda event: isinstance(event, Ended))
            if isinstance(event, Ended)
        }
    ended = told[runs.id]
    assert ended.error is not None
    assert ended.error.failure is FailureClass.INTERRUPTED
    assert (told[waits.id].record, told[waits.id].error) == (None, None)
    gone(b"71.7")


def test_what_still_runs_ends_when_the_executor_is_left(workshop: Workshop) -> None:
    one = task(workshop, workshop.step("echo begun", "sleep 72.7"))
    with executor(workshop) as running:
        running.submit(one)
        take(running, lambda event: isinstance(event, Line) and event.text == "begun")
        assert b"72.7" in processes()
    gone(b"72.7")


def gone(word: bytes) -> None:
    end = time.monotonic() + 120
    while word in processes() and time.monotonic() < end:
        time.sleep(0.1)
    assert word not in processes()


def test_a_step_that_talks_without_end_keeps_no_other_waiting_and_takes_no_more_memory(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "MOST_EVENTS", 50)
    talks = task(workshop, workshop.step("while :; do echo again; done"))
    with executor(workshop, jobs=2) as running:
        running.submit(talks)
        take(running, lambda event: isinstance(event, Line) and event.text == "again")
        time.sleep(0.5)
        assert len(running._told) <= 50
        other = task(workshop, workshop.step("touch $OUT/result"))
        running.submit(other)
        told = take(running, lambda event: isinstance(event, Ended))
    assert told[-1].task == other


def test_once_a_disk_is_nearly_full_there_is_no_place_and_what_waits_is_given_back(
    workshop: Workshop,
) -> None:
    with executor(workshop, jobs=3) as running:
        [offer] = running.offers()
        assert (offer.name, offer.cores) == ("local", 3)
        assert min(offer.memory, offer.disk) > 0
        [running._disk.full] = volumes({"build folders": workshop.home.path})
        assert running.offers() == ()
        running.submit(task(workshop, workshop.step("touch $OUT/result")))
        told = take(running, lambda event: isinstance(event, Ended))
    assert not any(isinstance(event, Started) for event in told)


def test_a_fault_in_what_runs_a_step_is_raised_where_events_are_taken(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> int:
        raise OSError("no /proc")

    monkeypatch.setattr(local, "free_memory", fails)
    with executor(workshop) as running, pytest.raises(OSError, match="no /proc"):
        running.submit(task(workshop, workshop.step("touch $OUT/result")))
        take(running, lambda event: isinstance(event, Ended))


def test_a_task_travels_as_the_words_of_one_command_with_the_address_of_the_store(
    workshop: Workshop, tmp_path: Path
) -> None:
    one = task(workshop, workshop.step("touch $OUT/result"))
    words = one.words(jobs=2, report=tmp_path / "report", memory=2**30, server=tmp_path)
    assert words[:2] == ["exec-step", one.step.key]
    assert f'"store": "{workshop.store.url}"' in words[2]
