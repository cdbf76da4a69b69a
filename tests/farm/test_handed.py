"""What goes to another machine and comes back says the same there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.execution.conftest import Workshop
from tests.execution.conftest import workshop as workshop
from tests.making import record_of

from rocbase.errors import CompileError, ExplainedError, InputError
from rocwheel_samples.tables import each
from rocwright.execution.executor import Alone, Ended, Task
from rocwright.execution.options import StepOptions
from rocwright.farm.handed import Handed, Place, Reply
from rocwright.farm.needs import fit_for, fits, needs_of, nobody_has, short_of
from rocwright.model.steps import About, FetchAction, Resources, RunAction, Step

STEP = Step(name="engine", component="engine", action=FetchAction(pending="engine"))


def told(error: ExplainedError | None = None) -> Ended:
    task = Task(step=STEP, store="file:///store", jobs=4)
    return Ended(
        task=task,
        seconds=4.5,
        record=None if error else record_of(STEP),
        error=error,
        peak_memory=2**20,
        too_large=Alone("clang", 2**30, 2**31),
        paused=1.5,
        least_jobs=1,
        most_jobs=4,
    )


def test_an_end_with_a_record_comes_back_as_it_was() -> None:
    ended = told()
    assert Reply.model_validate_json(Reply.of(ended).model_dump_json()).ended(ended.task) == ended


def test_an_end_with_an_error_comes_back_with_its_class_cause_and_next_step() -> None:
    error = CompileError("no", cause="a type is gone", next_step="look", detail="line 3", subject="x")
    ended = told(error)
    back = Reply.model_validate_json(Reply.of(ended).model_dump_json()).ended(ended.task)
    assert back.error is not None
    assert back.error.as_dict() == error.as_dict()
    assert (back.peak_memory, back.too_large) == (ended.peak_memory, ended.too_large)


def test_what_never_began_is_turned_away() -> None:
    assert Reply.of(Ended(task=told().task)).turned_away
    assert not Reply.of(told()).turned_away


def test_a_task_is_the_same_there_with_the_jobs_of_that_machine(workshop: Workshop) -> None:
    step = workshop.step("true", "touch $OUT/result")
    options = StepOptions(engine="podman", resume=False)
    task = Task(step=step, store=workshop.store.url, jobs=16, attempt=2, priority=3, options=options)
    there = Handed.model_validate_json(Handed.of(task, 0).model_dump_json()).task(4)
    assert there.step == step
    assert (there.id, there.jobs, there.priority, there.options) == (task.id, 4, 3, options)
    # a second try for want of memory keeps its bound
    assert Handed.of(task, 2).task(4).jobs == 2


def test_a_plan_of_another_version_is_refused(workshop: Workshop) -> None:
    step = workshop.step("true", "touch $OUT/result")
    handed = Handed.of(Task(step=step, store=workshop.store.url, jobs=1), 0)
    with pytest.raises(InputError, match=r"rocwright 0\.0\.1") as caught:
        handed.model_copy(update={"rocwright": "0.0.1"}).task(1)
    assert "same version on every machine" in caught.value.next_step


# which machine is fit


def place(**more: object) -> Place:
    told = {"name": "box", "cores": 8, "memory": 2**34, "disk": 2**40, "machine": "x86_64"} | more
    return Place.model_validate(told)


def compiling(**more: int) -> Step:
    return Step(
        name="engine",
        component="engine",
        action=RunAction(commands=("true",), outputs=()),
        about=About(architecture="x86_64"),
        resources=Resources.model_validate({"memory": 2**33, "disk": 2**39, **more}),
    )


@each(
    ("what", "lacks"),
    [
        (lambda: short_of(needs_of(compiling()), place()), []),
        (lambda: short_of(needs_of(compiling(memory=2**35)), place()), ["16.00 GiB memory of 32.00 GiB"]),
        (lambda: short_of(needs_of(compiling(disk=2**41)), place()), ["1024.00 GiB disk of 2048.00 GiB"]),
        (lambda: short_of(needs_of(compiling()), place(machine="aarch64")), ["it is aarch64, not x86_64"]),
        (lambda: short_of(needs_of(STEP), place()), ["no network"]),
        (lambda: short_of(needs_of(STEP), place(features={"network"}, machine="aarch64")), []),
    ],
)
def test_what_a_machine_lacks_is_named(what: Callable[[], list[str]], lacks: list[str]) -> None:
    assert what() == lacks


@each(
    ("wanted", "found"),
    [(0, ["small", "large"]), (2 * 2**30, ["large"]), (64 * 2**30, ["large"])],
)
def test_what_ran_out_of_memory_goes_where_there_is_more_and_else_where_there_is_most(
    wanted: int, found: list[str]
) -> None:
    places = {
        name: Place(name=name, cores=2, memory=memory * 2**30, disk=2**40, features=frozenset({"network"}))
        for name, memory in (("small", 1), ("large", 8))
    }
    assert fit_for(Task(step=STEP, store="file:///store", jobs=4, memory=wanted), places) == found


def test_the_nearest_is_the_one_that_lacks_least() -> None:
    step = compiling(memory=2**35)
    far = place(name="far", machine="aarch64", memory=2**33)
    error = nobody_has(step, [far, place(name="near"), place(name="small", memory=2**32)])
    assert not any(fits(needs_of(step), one) for one in (far, place()))
    assert error.cause == "the nearest is near: 16.00 GiB memory of 32.00 GiB"
    assert nobody_has(step, []).cause == "there is none that takes anything now"
