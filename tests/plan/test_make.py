"""From a lock to steps, for every stack of the catalog."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import pytest
from samples.many_components import lock_of_all, many_components
from tests.making import lock_of, with_sdist

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.target import Quirk
from rocwright.export.write import export
from rocwright.model.edits import Edit
from rocwright.model.steps import FetchAction, Input, Plan, RunAction
from rocwright.plan.edits import edits_for
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.aliases import base_of
from rocwright.plan.resolve.shipped import request_of, rows, shipped_lock
from rocwright.plan.values import expand

if TYPE_CHECKING:
    from _typeshed import TraceFunction

STACKS = sorted(builtin_catalog().stacks)


def plan_of(stack: str, *gpus: str) -> Plan:
    return make_plan(lock_of(stack, *gpus), builtin_catalog())


def keys(plan: Plan) -> dict[str, str]:
    return {step.name: step.key for step in plan.steps}


@each("stack", STACKS)
def test_each_step_comes_after_what_it_needs(stack: str) -> None:
    seen: set[str] = set()
    for step in plan_of(stack).steps:
        assert {item.key for item in step.inputs} <= seen, step.name
        seen.add(step.key)


@each("stack", STACKS)
def test_names_and_keys_of_steps_are_unique(stack: str) -> None:
    plan = plan_of(stack)
    assert (
        len({step.name for step in plan.steps}) == len({step.key for step in plan.steps}) == len(plan.steps)
    )


@each("stack", STACKS)
def test_the_artifacts_are_the_components_and_their_images(stack: str) -> None:
    wanted = set()
    for one in map(builtin_catalog().component, (locked.name for locked in lock_of(stack).components)):
        wanted |= {one.name} if one.kind not in ("image", "wheels") else set()
        wanted |= {f"image/{one.name}"} if one.image or one.kind == "image" else set()
        wanted |= {f"wheels/{one.name}"} if one.kind == "wheels" else set()
    assert set(plan_of(stack).artifacts) == wanted


@each("stack", STACKS)
def test_a_stack_has_one_root_for_each_role_and_its_builds_share_one(stack: str) -> None:
    plan, lock = plan_of(stack), lock_of(stack)
    roots = {step.name: step.key for step in plan.steps if step.kind == "base"}
    below = {one.name for one in lock.on.components} if lock.on is not None else set()
    there = {f"root/build@{lock.on.request.stack}"} if lock.on is not None else set()
    assert set(roots) == {f"root/{root.role}" for root in lock.roots} | there
    builds = [step for step in plan.steps if step.kind == "run" and step.component not in below]
    used = {item.key for step in builds for item in step.inputs if item.name == "root"}
    assert used == ({roots["root/build"]} if builds else set())


@each("stack", STACKS)
def test_a_plan_is_the_same_when_it_is_made_again(stack: str) -> None:
    assert plan_of(stack) == plan_of(stack)


@each("stack", STACKS)
def test_no_name_is_left_unfilled_in_an_environment(stack: str) -> None:
    for step in plan_of(stack).steps:
        if isinstance(step.action, RunAction):
            assert not [value for value in step.action.env.values() if "{" in value]


def test_what_has_no_machine_code_for_a_gpu_is_built_once_for_all() -> None:
    assert keys(plan_of("llama-vulkan", "gfx1103")) == keys(plan_of("llama-vulkan", "gfx1151"))


def test_what_has_machine_code_is_built_for_each_set_of_gpus() -> None:
    one, other = keys(plan_of("gfx-smoke", "gfx803")), keys(plan_of("gfx-smoke", "gfx1151"))
    assert {name for name in one if one[name] != other[name]} == {"gfx-smoke"}


def test_the_gpus_asked_for_reach_the_build() -> None:
    step = next(step for step in plan_of("gfx-smoke", "gfx803", "gfx1151").steps if step.kind == "run")
    assert isinstance(step.action, RunAction)
    assert "gfx803;gfx1151" in step.action.env.values()


def test_what_a_gpu_wants_of_a_recipe_reaches_the_build_for_that_gpu_alone() -> None:
    catalog = builtin_catalog()
    quirk = Quirk(
        variable="FOR_ONE",
        value="{target}",
        scope="build",
        recipes=("gfx-smoke", "llama.cpp-hip"),
        reason="r",
        source="s",
    )
    target = catalog.target("gfx1151").model_copy(update={"quirk": (quirk,)})
    changed = replace(catalog, targets={**catalog.targets, target.name: target})
    found = {
        gpu: keys(make_plan(lock_of("gfx-smoke", gpu), changed)) != keys(plan_of("gfx-smoke", gpu))
        for gpu in ("gfx803", "gfx1151")
    }
    assert found == {"gfx803": False, "gfx1151": True}
    step = next(one for one in make_plan(lock_of("gfx-smoke", "gfx1151"), changed).steps if one.kind == "run")
    assert isinstance(step.action, RunAction)
    assert step.action.env["FOR_ONE"] == "gfx1151"
    row = next(one for one in catalog.stacks["llama-hip"].row if one.gpu == "gfx1151")
    lock = shipped_lock(catalog, request_of(catalog.stacks["llama-hip"], row))
    assert lock is not None
    scripts = export(lock, changed, "all").values()
    assert any(b"export FOR_ONE=" in one.data for one in scripts)


def test_a_new_package_in_a_root_changes_that_root_and_what_is_built_in_it() -> None:
    lock = lock_of("torch-extensions")
    build = lock.root("build")
    assert build is not None
    fewer = build.model_copy(update={"packages": build.packages[:1]})
    others = tuple(root for root in lock.roots if root is not build)
    changed = keys(make_plan(lock.model_copy(update={"roots": (fewer, *others)}), builtin_catalog()))
    before = keys(make_plan(lock, builtin_catalog()))
    assert {name for name in before if before[name] != changed[name]} == {
        "packages/build", "root/build", "torchvision", "torchaudio",
    }  # fmt: skip


def test_another_commit_of_one_source_leaves_the_other_component_alone() -> None:
    lock = lock_of("torch-extensions")
    first, second = lock.components
    other = first.model_copy(update={"files": lock_of("gfx-smoke").components[0].files})
    changed = keys(make_plan(lock.model_copy(update={"components": (other, second)}), builtin_catalog()))
    before = keys(make_plan(lock, builtin_catalog()))
    assert {name for name in before if before[name] != changed[name]} == {
        f"source/{first.name}", f"tree/{first.name}", first.name,
    }  # fmt: skip


def test_the_day_on_which_the_lock_was_made_is_in_no_key() -> None:
    lock = lock_of("gfx-smoke")
    later = lock.model_copy(update={"created": "2030-01-01T00:00:00Z", "rocwright": "9"})
    assert keys(make_plan(later, builtin_catalog())) == keys(make_plan(lock, builtin_catalog()))


def test_a_plan_needs_the_room_that_its_packages_need() -> None:
    small = sum(step.resources.disk for step in plan_of("gfx-smoke").steps)
    large = make_plan(lock_of("gfx-smoke", size=10**9), builtin_catalog())
    assert sum(step.resources.disk for step in large.steps) > small + 10**9


def test_an_edit_is_taken_for_the_versions_that_it_names() -> None:
    edit = Edit.model_validate({"file": "f", "regex": "r", "with": "w", "why": "y", "for": "<0.22"})
    always = edit.model_copy(update={"versions": ""})
    assert edits_for((edit, always), "0.21.0", ("gfx1151",), "git") == (edit, always)
    assert edits_for((edit, always), "0.22.0", ("gfx1151",), "git") == (always,)


def test_a_prerelease_lies_in_the_range_that_its_number_lies_in() -> None:
    edit = Edit.model_validate({"file": "f", "regex": "r", "with": "w", "why": "y", "for": "<0.23"})
    assert edits_for((edit,), "0.22.0rc1", ("gfx1151",), "git") == (edit,)


def test_an_edit_is_taken_for_the_targets_places_and_phase_that_it_names() -> None:
    edit = Edit.model_validate(
        {"file": "f", "literal": "a", "with": "b", "why": "y", "targets": ["gfx803"], "places": ["git"]}
    )
    assert edits_for((edit,), "1", ("gfx1151", "gfx803"), "git") == (edit,)
    assert edits_for((edit,), "1", ("gfx1151",), "git") == ()
    assert edits_for((edit,), "1", ("gfx803",), "debian") == ()
    later = edit.model_copy(update={"phase": "prepared"})
    assert edits_for((edit, later), "1", ("gfx803",), "git", "prepared") == (later,)


def test_an_edit_may_ask_for_versions_of_other_components() -> None:
    edit = Edit.model_validate(
        {"file": "f", "literal": "a", "with": "b", "why": "y", "beside": {"torch": "<2.6", "blis": ""}}
    )
    assert edits_for((edit,), "1", (), "git", "", {"torch": "2.5.1", "blis": "5"}) == (edit,)
    assert edits_for((edit,), "1", (), "git", "", {"torch": "2.6.0", "blis": "5"}) == ()
    assert edits_for((edit,), "1", (), "git", "", {"torch": "2.5.1"}) == ()


def test_an_edit_is_filled_in_with_the_targets_asked_for() -> None:
    edit = Edit.model_validate({"file": "f", "list": "ARCHS", "add": ["{targets}"], "why": "y"})
    (filled,) = edits_for((edit,), "1", ("gfx1151", "gfx803"), "git")
    assert filled.add == ("gfx1151", "gfx803")


def test_a_recipe_that_asks_for_an_unknown_name_is_told_which() -> None:
    assert expand("v{version}", {"version": "1"}, "x") == "v1"
    for text in ("{verzion}", "{version.__class__}{}", "{", "{0}"):
        with pytest.raises(InputError, match="cannot be filled in"):
            expand(text, {"version": "1"}, "hello: A")


def test_what_a_build_downloads_is_fetched_before_it_and_laid_beside_its_inputs() -> None:
    lock = lock_of("rocm", "gfx1103")
    plan = make_plan(lock, builtin_catalog())
    (fetched,) = (step for step in plan.steps if step.name == "downloads/rocm")
    assert isinstance(fetched.action, FetchAction)
    assert fetched.action.files == lock.components[0].downloads
    built = next(step for step in plan.steps if step.name == "rocm")
    assert Input(name="downloads", key=fetched.key, output="*") in built.inputs


def test_a_lock_without_a_file_that_the_recipe_downloads_does_not_fit() -> None:
    lock = lock_of("rocm", "gfx1103")
    (rocm,) = lock.components
    fewer = rocm.model_copy(update={"downloads": rocm.downloads[1:]})
    with pytest.raises(InputError, match="does not match the recipes") as caught:
        make_plan(lock.model_copy(update={"components": (fewer,)}), builtin_catalog())
    assert rocm.downloads[0].filename in caught.value.cause


def test_a_release_has_the_downloads_of_its_versions() -> None:
    rocm = builtin_catalog().component("rocm")
    names = {version: {one.filename for one in rocm.downloads(version)} for version in ("7.9.0", "7.14.0")}
    assert "zlib-1.3.1.tar.gz" in names["7.9.0"] - names["7.14.0"]
    assert "zlib-1.3.2.tar.gz" in names["7.14.0"] - names["7.9.0"]
    assert len(rocm.downloads("7.10.0a20251021")) == 23


def test_a_source_distribution_among_the_packages_is_built_by_what_its_lock_says() -> None:
    lock = with_sdist(lock_of("rocm", "gfx1103"))
    steps = {step.name: step for step in make_plan(lock, builtin_catalog()).steps}
    built, requires, tree = (steps[f"python/old-style{one}"] for one in ("", "/requires", "/tree"))
    assert isinstance(built.action, RunAction)
    assert built.action.install == ("requires",)
    assert {(one.name, one.key) for one in built.inputs} == {
        ("root", steps["root/build"].key),
        ("src", tree.key),
        ("requires", requires.key),
    }
    rocm = steps["rocm"].action
    assert isinstance(rocm, RunAction)
    assert rocm.install == ("python", "python-old-style")
    assert Input(name="python-old-style", key=built.key, output="wheel") in steps["rocm"].inputs


def test_another_build_requirement_is_another_wheel_and_another_build() -> None:
    lock = with_sdist(lock_of("rocm", "gfx1103"))
    assert lock.python is not None
    (sdist,) = lock.python.sdists
    fewer = sdist.model_copy(update={"requires": sdist.requires[1:]})
    other = lock.model_copy(update={"python": lock.python.model_copy(update={"sdists": (fewer,)})})
    before, after = (keys(make_plan(one, builtin_catalog())) for one in (lock, other))
    assert {name for name in before if before[name] != after[name]} == {
        "python/old-style/requires",
        "python/old-style",
        "prepare/rocm",
        "prepared/rocm",
        "rocm",
    }


def test_steps_on_a_base_take_the_python_that_the_base_names() -> None:
    plan = make_plan(lock_of("vllm", "gfx1151", base="fedora:43"), builtin_catalog())
    taken = {step.name: step.action.python for step in plan.steps if isinstance(step.action, RunAction)}
    assert set(taken.values()) == {"python3.13"}
    for stack in STACKS:
        lock = lock_of(stack)
        _, release = base_of(lock, builtin_catalog())
        others = (step.action for step in plan_of(stack).steps if isinstance(step.action, RunAction))
        assert {one.python for one in others} <= {"", release.interpreter}, stack


def instructions(run: Callable[[], object]) -> int:
    """How many instructions of Python that takes: the same on every machine, however busy it is."""
    counted = 0

    def trace(frame: FrameType, event: str, _: object) -> TraceFunction:
        nonlocal counted
        frame.f_trace_opcodes = True
        counted += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return counted


def test_a_plan_of_twice_the_components_takes_no_more_than_twice_the_work() -> None:
    few, many = many_components(40), many_components(80)
    one, other = lock_of_all(few), lock_of_all(many)
    make_plan(one, few)
    assert instructions(lambda: make_plan(other, many)) < 2.1 * instructions(lambda: make_plan(one, few))


def test_what_compiles_device_code_does_so_through_the_compiler_cache() -> None:
    [launcher] = builtin_catalog().launchers
    steps = {one.name: one.action for one in plan_of("pytorch", "gfx803").steps}
    ours = {
        name
        for name, action in steps.items()
        if isinstance(action, RunAction) and set(launcher.setup) <= set(action.commands)
    }
    assert {"pytorch", "torchvision", "torchaudio"} <= ours
    assert "prepare/pytorch" not in ours
    asked = {name for name in ours if launcher.package in builtin_catalog().component(name).system.rocm}
    assert asked == ours
    recipe = builtin_catalog().component("pytorch")
    found = steps["pytorch"]
    assert isinstance(found, RunAction)
    # what the recipe finds out about the compiler comes behind it
    assert found.commands.index(launcher.setup[-1]) < found.commands.index(recipe.run[0])


def test_what_compiles_on_torch_is_told_of_a_rocm_in_usr_by_one_fact() -> None:
    [told] = builtin_catalog().component("pytorch").setup
    [launcher] = builtin_catalog().launchers
    on_torch = {"torchvision", "torchaudio"}
    wanted = {("pytorch", "debian:sid", "gfx803"): on_torch}
    wanted["vllm", "fedora:43", "gfx1151"] = on_torch | {"flash-attention", "vllm"}
    for stack, row in rows(builtin_catalog()):
        if (stack.name, row.base, row.gpu) not in wanted:
            continue
        lock = shipped_lock(builtin_catalog(), request_of(stack, row))
        assert lock is not None
        on_torch = wanted.pop((stack.name, row.base, row.gpu))
        steps = {one.name: one.action for one in make_plan(lock, builtin_catalog()).steps}
        commands = {name: one.commands for name, one in steps.items() if isinstance(one, RunAction)}
        assert {name for name, ours in commands.items() if told in ours} == on_torch
        for name in on_torch:
            assert commands[name].index(launcher.setup[-1]) < commands[name].index(told)
            assert commands[name].index(told) < commands[name].index(builtin_catalog().component(name).run[0])
    assert not wanted


@pytest.mark.skipif(Path("/opt/rocm").exists(), reason="this machine has a ROCm of its own in /opt/rocm")
@pytest.mark.parametrize("installed", [True, False])
def test_torch_finds_a_rocm_in_usr_with_its_clang_and_device_libraries(
    tmp_path: Path, installed: bool
) -> None:
    libraries = tmp_path / "resources/amdgcn/bitcode"
    libraries.mkdir(parents=True)
    programs = {
        "hipconfig": f'[ "$1" = -R ] && echo /usr || echo {tmp_path}',
        "clang": f"echo {tmp_path}/resources",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755 if installed else 0o644)
    said = 'printf "%s\n" "${ROCM_PATH:-}" "${HIP_CLANG_PATH:-}" "${HIP_DEVICE_LIB_PATH:-}"'
    commands = "\n".join((*builtin_catalog().component("pytorch").setup, said))
    for given, expected in (
        ({}, ["/usr", str(tmp_path), str(libraries)] if installed else ["", "", ""]),
        ({"ROCM_PATH": "/of/the/provider"}, ["/of/the/provider", "", ""]),
    ):
        env = {"PATH": f"{tmp_path}:/usr/bin:/bin", **given}
        done = subprocess.run(["sh", "-euc", commands], env=env, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == expected
