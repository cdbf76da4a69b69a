"""The seam between the scheduler and what runs steps: another executor runs the same plan."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop
from tests.execution.serial_executor import SerialExecutor
from tests.execution.test_scheduler import Notebook, log, outcomes

import rocwright.execution.scheduler as scheduler
from rocbase.errors import FailureClass, InputError, InterruptedByUser, OutOfMemoryError
from rocwheel_samples.tables import each
from rocwright.execution.estimate import Expected
from rocwright.execution.executor import Ended, Event, Executor, ExecutorOffer, Lost, Sampled, Started, Task
from rocwright.execution.options import BuildOptions
from rocwright.execution.outcome import StepsOutcome
from rocwright.execution.progress import PlainProgress
from rocwright.execution.scheduler import Notes, schedule
from rocwright.model.steps import Plan, Step
from rocwright.plan.decide import decide
from rocwright.records.model import StepRun


def run(
    workshop: Workshop,
    executor: Executor,
    *steps: Step,
    jobs: int = 2,
    under_way: Notes | None = None,
    expected: Mapping[str, Expected] | None = None,
) -> StepsOutcome:
    plan = Plan(
        steps=(workshop.root, *workshop.trees.values(), *steps), artifacts=tuple(one.name for one in steps)
    )
    return schedule(
        decide(plan, workshop.store),
        workshop.store,
        executor,
        BuildOptions(jobs=jobs, engine=workshop.engine),
        workshop.home.runs / "run",
        expected or {},
        PlainProgress(),
        under_way,
    )


@pytest.fixture
def serial(tmp_path: Path) -> SerialExecutor:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return SerialExecutor(folder)


# another executor


def test_another_executor_runs_the_same_plan_with_nothing_shared_but_the_store(
    workshop: Workshop, serial: SerialExecutor
) -> None:
    first = workshop.step("echo said", "echo 1 > $OUT/result", name="first")
    second = workshop.step("cat $IN/x/result file > $OUT/result", name="second", inputs={"x": first})
    bad = workshop.step("echo 'error: bad' >&2", "exit 1", name="bad")
    after = workshop.step("touch $OUT/result", name="after", inputs={"x": bad})
    notebook = Notebook()
    told = run(workshop, serial, first, second, bad, after, under_way=notebook)
    assert outcomes(told) == {"first": "built", "second": "built", "bad": "failed", "after": "skipped"}
    assert [one.step.name for one in serial.ran] == ["first", "bad", "second"]
    record = workshop.store.record(second.key)
    assert record is not None
    assert workshop.text(record) == "1\ntext\n"
    assert log(workshop, "first")[-3].endswith(" said")
    [(name, error)] = told.failures
    assert (name, error.failure, error.cause) == ("bad", FailureClass.COMPILE, "error: bad")
    assert [state for name, state, _ in notebook.told if name == "second"] == ["queued", "running", "ended"]
    # its build folders are its own: those of this home were never made
    assert not workshop.home.work.exists()
    assert (serial.folder / "work").exists()


def test_the_longest_way_to_the_end_of_the_build_is_begun_first(
    workshop: Workshop, serial: SerialExecutor
) -> None:
    steps = [workshop.step("touch $OUT/result", name=name) for name in ("short", "middle", "head")]
    tail = workshop.step("touch $OUT/result", name="tail", inputs={"x": steps[-1]})
    expected = {"short": 5.0, "middle": 20.0, "head": 10.0, "tail": 30.0}
    run(workshop, serial, *steps, tail, expected={name: Expected(work=one) for name, one in expected.items()})
    assert [one.step.name for one in serial.ran] == ["head", "middle", "short", "tail"]
    assert {one.step.name: one.priority for one in serial.ran} == {
        "head": 0,
        "tail": 1,
        "middle": 2,
        "short": 3,
    }


class Scripted(SerialExecutor):
    """Tells of each attempt what a test wants it to."""

    def __init__(self, folder: Path, *tell: str) -> None:
        super().__init__(folder)
        self.tell = [*tell]

    def run(self, task: Task) -> Iterator[Event]:
        told = self.tell.pop(0) if self.tell else "run"
        if told == "run":
            yield from super().run(task)
            return
        self.ran.append(task)
        yield Started(task, task.jobs)
        match told:
            case "lost":
                yield Lost(task, f"node-{6 + task.attempt}", "it was switched off")
            case "short of memory":
                yield Ended(task=task, error=OutOfMemoryError("too much"), peak_memory=2**30)
            case "Ctrl-C":
                error = InterruptedByUser("killed")
                self.soon.append(Ended(task=task, error=error, seconds=4.5, peak_memory=2**20))
                raise KeyboardInterrupt

    def cancel(self, task: Task) -> None:
        if task in self.queue:
            super().cancel(task)


def test_a_step_that_was_lost_with_its_machine_is_tried_again(workshop: Workshop, tmp_path: Path) -> None:
    step = workshop.step("touch $OUT/result")
    executor = Scripted(tmp_path, "lost", "lost")
    told = run(workshop, executor, step)
    assert [one.outcome for one in told.steps] == ["again", "again", "built"]
    assert told.failures == []
    assert [one.attempt for one in executor.ran] == [1, 2, 3]
    assert told.steps[0].error["message"] == "the step was lost with node-7, at attempt 1"


def test_a_step_that_is_lost_three_times_has_failed(workshop: Workshop, tmp_path: Path) -> None:
    step = workshop.step("touch $OUT/result", name="first")
    after = workshop.step("touch $OUT/result", name="after", inputs={"x": step})
    told = run(workshop, Scripted(tmp_path, "lost", "lost", "lost"), step, after)
    assert [one.outcome for one in told.steps] == ["again", "again", "failed", "skipped"]
    [(_, error)] = told.failures
    assert (error.failure, error.cause) == (FailureClass.SANDBOX, "it was switched off")
    assert error.message == "the step was lost with node-7 and node-8 and node-9, at attempt 3"


def test_a_second_try_for_want_of_memory_is_asked_for_alone_with_half_the_jobs(
    workshop: Workshop, tmp_path: Path
) -> None:
    executor = Scripted(tmp_path, "short of memory")
    told = run(workshop, executor, workshop.step("touch $OUT/result"), jobs=8)
    assert [one.outcome for one in told.steps] == ["again", "built"]
    assert [(one.jobs, one.alone, one.attempt) for one in executor.ran] == [(8, False, 1), (4, True, 2)]


def test_ctrl_c_cancels_what_waits_and_what_runs_and_takes_their_ends(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [workshop.step(f"true {name}", "touch $OUT/result", name=name) for name in ("one", "two")]
    executor = Scripted(tmp_path, "Ctrl-C")
    kept = Kept()
    with pytest.raises(InterruptedByUser):
        run(workshop, executor, *steps, under_way=kept)
    assert (executor.queue, executor.soon) == ([], [])
    said = capsys.readouterr().err
    assert "one: stopped after" in said
    assert "two" not in said
    # what it took is on record, and that it failed is not
    [stopped] = [one for one in kept.notes if one.state == "ended"]
    assert (stopped.name, stopped.outcome, stopped.error) == ("one", "stopped", {})
    assert (stopped.seconds, stopped.peak_memory) == (4.5, 2**20)


class Kept:
    """Each note of a step, whole."""

    def __init__(self) -> None:
        self.notes: list[StepRun] = []

    def note(self, step: StepRun) -> None:
        self.notes.append(step)

    def sample(self, step: str, memory: int, processes: int) -> None:
        pass


class Late(SerialExecutor):
    """Tells of an attempt again when it has long ended, as a machine does that was only believed lost."""

    def run(self, task: Task) -> Iterator[Event]:
        if task.attempt == 1:
            yield Lost(task, "node-7", "it does not answer")
            return
        first = Task(**{name: getattr(task, name) for name in task.__slots__} | {"attempt": 1})
        yield Ended(task=first, error=OutOfMemoryError("late"))
        yield from super().run(task)
        yield Sampled(task, 1, 1, 1)


def test_what_comes_of_an_attempt_that_was_given_up_is_not_heeded(workshop: Workshop, tmp_path: Path) -> None:
    told = run(workshop, Late(tmp_path), workshop.step("touch $OUT/result"))
    assert [one.outcome for one in told.steps] == ["again", "built"]


class Closing(SerialExecutor):
    """Runs one step, and gives all others back."""

    def events(self) -> Iterator[Event]:
        if self.ran:
            for task in [*self.queue]:
                self.cancel(task)
        yield from super().events()


def test_steps_that_are_given_back_unstarted_are_skipped(workshop: Workshop, tmp_path: Path) -> None:
    steps = [
        workshop.step(f"true {name}", "touch $OUT/result", name=name) for name in ("one", "two", "three")
    ]
    steps += [workshop.step("touch $OUT/result", name="after", inputs={"x": steps[0]})]
    told = run(workshop, Closing(tmp_path), *steps)
    assert outcomes(told) == {"one": "built", "two": "skipped", "three": "skipped", "after": "skipped"}
    assert told.failures == []


class Nowhere(SerialExecutor):
    """Has no machine."""

    def offers(self) -> Sequence[ExecutorOffer]:
        return ()


def test_an_executor_without_a_place_is_refused_before_anything_runs(
    workshop: Workshop, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="has no place where a step can run"):
        run(workshop, Nowhere(tmp_path), workshop.step("touch $OUT/result"))


# what the scheduler may know

FORBIDDEN = {
    "os", "signal", "subprocess", "psutil", "multiprocessing", "threading", "concurrent",
    "rocbase.processes", "rocwright.diagnosis.machine", "rocwright.sandbox", "rocwright.farm",
    "rocwright.execution.jobs", "rocwright.execution.disk",
}  # fmt: skip
"""What tells how and where a step runs."""


def imported(source: str) -> set[str]:
    """All that a module imports, in functions too, each with the packages that it is in."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [str(node.module), *(f"{node.module}.{one.name}" for one in node.names)]
        for name in names:
            words = name.split(".")
            found |= {".".join(words[:count]) for count in range(1, len(words) + 1)}
    return found


def test_the_scheduler_knows_no_process_and_no_machine() -> None:
    assert imported(Path(scheduler.__file__).read_text()).isdisjoint(FORBIDDEN)


@each(
    "line",
    ["import subprocess", "from os import kill", "def f():\n    from rocbase.processes import run"],
)
def test_an_import_is_found_wherever_it_stands(line: str) -> None:
    assert imported(line) & FORBIDDEN
