"""The steps of a rehearsal: what is in their keys, and what rows share."""

from __future__ import annotations

import pytest

from rocwheel.errors import InputError
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.model import Component, Release
from rocwright.model.steps import FetchAction, RunAction, Step
from rocwright.rehearsal.book import StandIn, Trial
from rocwright.rehearsal.stand_ins import Ready
from rocwright.rehearsal.steps import Wanted, trial_step

ROOT = Step(name="root/build", component="debian:sid", action=FetchAction())
TREE = Step(name="tree/engine", component="engine", action=FetchAction(pending="a tree"))


def engine(resume: int = 2) -> Component:
    return Component(
        name="engine",
        summary="",
        license="MIT",
        kind="wheel",
        release=(Release(version="1", source=""),),
        run=("cmake -S . -B /build/work", "ninja -C /build/work"),
        resume=resume,
    )


def step(run: str, gpu: str = "gfx803", component: Component | None = None) -> Step:
    ready = Ready(
        stand_in=StandIn(name="plain", base="debian:sid", system=("c++",), source=""),
        steps=(ROOT,),
        compiler_reads=(),
        env={},
        catalog=builtin_catalog(),
    )
    trial = Trial(part="configure", name="tried", on=("plain",), run=run)
    wanted = Wanted(trials=(trial,), gpu=gpu, seed="1", every=False)
    return trial_step("engine-plain", component or engine(), ready, TREE, wanted, {"TARGETS": gpu})


def test_rows_for_other_gpus_share_what_does_not_depend_on_the_gpu() -> None:
    assert step("g++ --version").key == step("g++ --version", "gfx1151").key
    assert step('hipcc "$GPU"').key != step('hipcc "$GPU"', "gfx1151").key


def test_without_a_command_the_recipes_own_configure_with_its_environment() -> None:
    action = step("").action
    assert isinstance(action, RunAction)
    assert "cmake -S . -B /build/work" in action.env["REHEARSAL"]
    assert "ninja" not in action.env["REHEARSAL"]
    assert action.env["TARGETS"] == "gfx803"
    assert step("").key != step("", "gfx1151").key


def test_a_command_has_those_of_the_recipes_variables_that_it_names() -> None:
    for run in ('cmake -DTARGETS="$TARGETS"', "cmake -DTARGETS=${TARGETS}"):
        action = step(run).action
        assert isinstance(action, RunAction)
        assert action.env["TARGETS"] == "gfx803"
    action = step('echo "$TARGET"').action
    assert isinstance(action, RunAction)
    assert "TARGETS" not in action.env


def test_a_recipe_that_does_not_say_what_configures_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to run"):
        step("", component=engine(resume=0))


def test_the_programs_are_in_the_key() -> None:
    action = step("true").action
    assert isinstance(action, RunAction)
    assert len(action.env["REHEARSAL_PROGRAMS"].split()) == 2
