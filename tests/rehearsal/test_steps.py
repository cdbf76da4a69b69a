"""The steps of a rehearsal: what is in their keys, and what rows share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from rocbase.errors import InputError
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.model import Component, Release
from rocwright.model.step_environment import FIXED
from rocwright.model.steps import BaseAction, FetchAction, Input, RunAction, Step
from rocwright.plan.resolve.model import Request
from rocwright.rehearsal.book import StandIn, Trial
from rocwright.rehearsal.stand_ins import Ready, customized
from rocwright.rehearsal.steps import REPORT, TrialRequest, built_trial_step, trial_step

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


def ready(around: Mapping[str, str] = MappingProxyType({})) -> Ready:
    stand_in = StandIn(name="plain", base="debian:sid", system=("c++",), env=dict(around), source="")
    return Ready(stand_in=stand_in, steps=(ROOT,), compiler_reads=(), env={}, catalog=builtin_catalog())


def wanted(run: str, gpu: str = "gfx803") -> TrialRequest:
    trial = Trial(part="configure", name="tried", on=("plain",), run=run)
    return TrialRequest(trials=(trial,), gpu=gpu, seed="1", every=False)


def step(
    run: str,
    gpu: str = "gfx803",
    component: Component | None = None,
    around: Mapping[str, str] = MappingProxyType({}),
) -> Step:
    asked = wanted(run, gpu)
    return trial_step("engine-plain", component or engine(), ready(around), TREE, asked, {"TARGETS": gpu})


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


def test_a_stand_ins_own_variables_take_the_place_of_the_recipes() -> None:
    around = {"TARGETS": "all", "PATH": "{path}:/opt/rocm/bin"}
    for run in ("", "cmake ."):
        action = step(run, around=around).action
        assert isinstance(action, RunAction)
        assert action.env["TARGETS"] == "all"
        assert action.env["PATH"] == f"{FIXED['PATH']}:/opt/rocm/bin"


def test_a_component_as_it_is_built_is_tried_in_the_stand_ins_root_with_its_python() -> None:
    wheels = Input(name="python-x", key="0" * 64, output="*")
    root = Input(name="root", key="1" * 64, output="root")
    source = Input(name="src", key="2" * 64, output="tree")
    run = RunAction(
        commands=("export A=1", *engine().run), outputs=(REPORT,), install=("python-x",), resume=3
    )
    built = Step(name="engine", component="engine", action=run, inputs=(wheels, root, source))
    made = built_trial_step("engine-opt", engine(), ready(), built, TREE, wanted(""), {})
    assert [(one.name, one.key) for one in made.inputs] == [
        ("python-x", wheels.key),
        ("root", ROOT.key),
        ("src", TREE.key),
    ]
    assert isinstance(made.action, RunAction)
    assert made.action.install == ("python-x",)
    assert made.action.commands[0] == "export A=1"


def test_what_a_stand_in_changes_in_the_root_makes_another_root_of_the_same_packages() -> None:
    root = Step(
        name="root/build", component="debian:sid", action=BaseAction(suite="sid", architecture="amd64")
    )
    like = Request(stack="pytorch", gpu=("gfx803",), base="debian:sid")
    one = StandIn(name="opt", base="debian:sid", like=like, customize=("ldconfig",), source="")
    made = customized(root, one)
    assert (made.name, made.inputs) == ("root/build/opt", root.inputs)
    assert made.key != root.key
    assert customized(root, one.model_copy(update={"customize": ()})) == root
    moving = customized(root, one.model_copy(update={"moves": {"/usr/lib/": "/usr/lib64/"}})).action
    assert isinstance(moving, BaseAction)
    assert moving.customize[0].startswith("python3 - /usr/lib/=/usr/lib64/ <<")
    assert moving.customize[1:] == ("ldconfig",)


def test_the_root_of_an_image_cannot_be_customized() -> None:
    image = BaseAction(family="image", suite="1", architecture="amd64", image="0" * 64)
    like = Request(stack="pytorch", gpu=("gfx803",), base="debian:sid")
    one = StandIn(name="opt", base="debian:sid", like=like, customize=("ldconfig",), source="")
    with pytest.raises(InputError, match="cannot be customized"):
        customized(Step(name="root/build", component="arch", action=image), one)


def test_the_programs_are_in_the_key() -> None:
    action = step("true").action
    assert isinstance(action, RunAction)
    assert len(action.env["REHEARSAL_PROGRAMS"].split()) == 2
