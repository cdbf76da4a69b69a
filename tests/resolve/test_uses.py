"""What is asked for beside a stack becomes an input of those that can take it in."""

from __future__ import annotations

import pytest

from rocwright.catalog.load import builtin_catalog
from rocwright.errors import ConflictError
from rocwright.export.write import export
from rocwright.plan.make import make_plan
from rocwright.plan.model import Plan, RunAction
from rocwright.resolve.lock import make_lock
from rocwright.resolve.model import Lock, Request
from rocwright.resolve.outside import Offline
from rocwright.resolve.shipped import request_of, rows

GFX803 = Request(
    stack="pytorch",
    gpu=("gfx803",),
    base="rocm-ubuntu-24.04:6.4",
    provider="amd",
    versions={"pytorch": "2.6.0"},
)
GFX1103 = Request(stack="pytorch", gpu=("gfx1103",), base="arch:2025-10-28", versions={"pytorch": "2.9.1"})


def lock_with(request: Request, *extra: str) -> Lock:
    wanted = request.model_copy(update={"extra": extra})
    return make_lock(wanted, builtin_catalog(), Offline(), lambda _: None)


def plan_with(request: Request, *extra: str) -> Plan:
    return make_plan(lock_with(request, *extra), builtin_catalog())


def inputs(plan: Plan, name: str) -> set[str]:
    return {one.name for step in plan.steps if step.name == name for one in step.inputs}


def action(plan: Plan, name: str) -> RunAction:
    (found,) = (step.action for step in plan.steps if step.name == name)
    assert isinstance(found, RunAction)
    return found


def test_a_library_that_is_asked_for_is_built_before_and_laid_into_the_build() -> None:
    plan = plan_with(GFX803, "rocblas")
    names = [step.name for step in plan.steps]
    assert names.index("rocblas") < names.index("pytorch")
    assert "rocblas" in inputs(plan, "pytorch")
    commands = action(plan, "pytorch").commands
    setup = builtin_catalog().component("rocblas").setup
    assert commands[: len(setup)] == setup


def test_without_being_asked_for_it_is_nowhere() -> None:
    plan = plan_with(GFX803)
    assert not any("rocblas" in {step.name, *inputs(plan, step.name)} for step in plan.steps)


def test_what_is_taken_in_changes_the_environment_of_who_takes_it() -> None:
    without, with_it = (
        action(plan_with(GFX1103, *one), "pytorch") for one in ((), ("aotriton", "aocl-blis"))
    )
    assert (without.env["USE_FLASH_ATTENTION"], without.env["BLAS"]) == ("0", "OpenBLAS")
    assert (with_it.env["USE_FLASH_ATTENTION"], with_it.env["BLAS"]) == ("1", "BLIS")
    assert any("AOTRITON_INSTALLED_PREFIX" in one for one in with_it.commands)


def test_the_version_taken_is_one_that_fits() -> None:
    versions = {one.name: one.version for one in lock_with(GFX1103, "aotriton").components}
    assert versions["aotriton"].startswith("0.11")


def test_the_newest_that_takes_it_in_is_chosen_where_none_is_pinned() -> None:
    lock = lock_with(GFX1103.model_copy(update={"versions": {}}), "aotriton")
    assert {one.name: one.version for one in lock.components}["pytorch"] == "2.9.1"


def test_what_a_pinned_version_does_not_take_in_is_a_conflict_in_words() -> None:
    request = Request(stack="pytorch", gpu=("gfx1151",), base="ubuntu:24.04", versions={"pytorch": "2.12.1"})
    with pytest.raises(ConflictError) as caught:
        lock_with(request, "aotriton")
    assert "pytorch 2.12.1 takes in no aotriton" in caught.value.detail


def test_it_is_exported_as_an_input_too() -> None:
    files = export(lock_with(GFX803, "rocblas"), builtin_catalog(), "all")
    assert "COPY --from=rocblas /out/rocblas-*.tar.gz /in/rocblas/\n" in files["pipeline/Containerfile"].text
    assert '/out/"rocblas-*.tar.gz' in files["nspawn/build-nspawn.sh"].text


def test_no_row_of_a_stack_is_touched_by_what_could_be_asked_for() -> None:
    for stack, row in rows(builtin_catalog()):
        lock = make_lock(request_of(stack, row), builtin_catalog(), Offline(), lambda _: None)
        assert not {one.name for one in lock.components} & set(stack.optional)
