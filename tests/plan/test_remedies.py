"""What remedies do to a plan, and what no remedy may do."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from tests.making import lock_of

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.remedy import RemedyAction
from rocwright.model.steps import RunAction, Step
from rocwright.plan.make import make_plan
from rocwright.plan.remedies import WRAPPERS, assigned, remedied_commands, remedied_environment
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.plan.resolve.model import Lock, Remedy

ACTION: TypeAdapter[RemedyAction] = TypeAdapter(RemedyAction)


def action(**said: Any) -> RemedyAction:
    return ACTION.validate_python(said)


def remedy(component: str, done: RemedyAction, **other: Any) -> Remedy:
    said: dict[str, Any] = {
        "issue": "an-issue",
        "component": component,
        "version": "1.0",
        "action": done,
        "why": "it is known",
        "step": component,
        "since": "2026-01-01T00:00:00Z",
        "outcome": "helped",
    }
    return Remedy.model_validate(said | other)


def mended(lock: Lock, *remedies: Remedy) -> Lock:
    return lock.model_copy(update={"remedies": remedies})


def step(lock: Lock, name: str) -> Step:
    return next(one for one in make_plan(lock, builtin_catalog()).steps if one.name == name)


def run(lock: Lock, name: str) -> RunAction:
    found = step(lock, name).action
    assert isinstance(found, RunAction)
    return found


def test_a_lock_with_remedies_is_read_as_it_was_written_and_one_without_has_none(tmp_path: Path) -> None:
    lock = lock_of("llama-vulkan", "gfx1151")
    write_lock(tmp_path / "plain.lock", lock)
    assert "remedies" not in (tmp_path / "plain.lock").read_text()
    edit = {"file": "a.c", "include": "<cstdint>", "for": "<2", "why": "it is missing"}
    remedies = (
        remedy("llama.cpp", action(kind="set", variables={"A": "1"}, join=" ")),
        remedy("llama.cpp", action(kind="unset", variables=["A"]), outcome="useless", told="no"),
        remedy("llama.cpp", action(kind="edit", component="llama.cpp", edit=edit), outcome="helped"),
        remedy("llama.cpp", action(kind="jobs", share=0.5), memory=1024),
        remedy("llama.cpp", action(kind="version", component="cmake", versions="<4")),
        remedy("llama.cpp", action(kind="packages", names=["c++"])),
    )
    write_lock(tmp_path / "mended.lock", mended(lock, *remedies))
    assert read_lock(tmp_path / "mended.lock").remedies == remedies


def test_a_remedy_changes_the_key_of_its_component_alone_and_one_that_did_not_help_none() -> None:
    lock = lock_of("llama-vulkan", "gfx1151")
    one = remedy("llama.cpp", action(kind="set", variables={"SOME": "1"}))
    with_it = mended(lock, one)
    assert run(with_it, "llama.cpp").env["SOME"] == "1"
    assert step(with_it, "llama.cpp").key != step(lock, "llama.cpp").key
    assert step(with_it, "tree/llama.cpp").key == step(lock, "tree/llama.cpp").key
    useless = mended(lock, one.model_copy(update={"outcome": "useless"}))
    assert make_plan(useless, builtin_catalog()) == make_plan(lock, builtin_catalog())


def test_an_edit_goes_into_the_tree_of_the_component_that_it_names() -> None:
    lock = lock_of("llama-vulkan", "gfx1151")
    edit = {"file": "a.c", "include": "<cstdint>", "why": "it is missing"}
    with_it = mended(lock, remedy("other", action(kind="edit", component="llama.cpp", edit=edit)))
    assert step(with_it, "tree/llama.cpp").action.edits[-1].file == "a.c"  # type: ignore[union-attr]
    assert step(with_it, "llama.cpp").key != step(lock, "llama.cpp").key


def test_a_value_is_joined_to_what_a_variable_holds_where_the_action_says_so() -> None:
    flags = {"CXXFLAGS": "-include cstdint"}
    joined = action(kind="set", variables=flags, join=" ")
    assert remedied_environment({"CXXFLAGS": "-O2"}, [joined]) == {"CXXFLAGS": "-O2 -include cstdint"}
    assert remedied_environment({}, [joined]) == flags
    assert remedied_environment({"CXXFLAGS": "-O2"}, [action(kind="set", variables=flags)]) == flags
    assert remedied_environment({"A": "1"}, [action(kind="unset", variables=["A", "B"])]) == {}


def test_what_the_recipes_own_shell_sets_is_mended_behind_it() -> None:
    commands = ("export A=1 B='x y'", "A=2 make", "A=3")
    actions = [
        action(kind="unset", variables=["A"]),
        action(kind="set", variables={"B": "it's"}),
    ]
    assert remedied_commands(commands, actions) == (
        "export A=1 B='x y'",
        "unset A",
        "export B='it'\"'\"'s'",
        "A=2 make",
        "A=3",
        "unset A",
    )
    assert assigned("echo 'unfinished") == ()


@each(
    "done",
    [
        {"kind": "set", "variables": {"PATH": "/tmp"}},
        {"kind": "unset", "variables": ["SOURCE_DATE_EPOCH"]},
        {"kind": "set", "variables": {"HSA_OVERRIDE_GFX_VERSION": "11.0.0"}},
        {"kind": "set", "variables": {"A": "1"}, "scope": "run"},
    ],
    ids=["path", "epoch", "override", "run"],
)
def test_a_strangers_remedy_that_no_build_may_have_is_refused(done: dict[str, Any]) -> None:
    lock = mended(lock_of("llama-vulkan", "gfx1151"), remedy("llama.cpp", action(**done)))
    with pytest.raises(InputError, match="cannot be part of a build"):
        make_plan(lock, builtin_catalog())


@pytest.mark.parametrize("taken", [". ./env.sh", "source /etc/profile.d/rocm.sh"])
def test_what_a_recipe_takes_in_from_a_file_is_mended_behind_it(taken: str) -> None:
    gone = action(kind="unset", variables=["LEAKED"])
    put = action(kind="set", variables={"A": "1"})
    more = action(kind="set", variables={"FLAGS": "-g"}, join=" ")
    assert remedied_commands([taken, "make"], (gone, put, more)) == (
        taken,
        "unset LEAKED",
        "export A=1",
        "make",
    )


@each("command", [". ./env.sh && make", "./env.sh", "make . all", "echo source a b"])
def test_a_command_that_does_more_than_take_in_a_file_stays_as_it_is(command: str) -> None:
    assert remedied_commands([command], (action(kind="unset", variables=["LEAKED"]),)) == (command,)


def test_a_step_goes_on_with_the_same_command_of_its_recipe_whatever_comes_before_it() -> None:
    lock = lock_of("llama-hip")
    plain = run(lock, "llama.cpp-hip")
    recipe = builtin_catalog().component("llama.cpp-hip")
    wanted = recipe.run[recipe.resume - 1]
    assert plain.commands[plain.resume - 1] == wanted
    lock = lock_of("pytorch", "gfx803")
    recipe = builtin_catalog().component("pytorch")
    flags = action(kind="set", variables={"A": "1"})
    catalog = builtin_catalog()
    with_setup = recipe.model_copy(
        update={"run": ("export A=2", *recipe.run), "resume": recipe.resume + 1, "split": recipe.split + 1}
    )
    changed = replace(catalog, components={**catalog.components, "pytorch": with_setup})
    done = mended(lock, remedy("pytorch", flags))
    steps = {one.name: one.action for one in make_plan(done, changed).steps}
    made = steps["pytorch"]
    assert isinstance(made, RunAction)
    assert "export A=1" in made.commands
    assert made.commands[made.resume - 1] == recipe.run[recipe.resume - 1]
    assert made.commands[made.split - 1] == recipe.run[recipe.split - 1]
    prepared = steps["prepare/pytorch"]
    assert isinstance(prepared, RunAction)
    assert (prepared.resume, prepared.split) == (0, 0)


def test_a_wrapper_gives_flags_behind_all_others_and_the_cache_finds_the_compilers(tmp_path: Path) -> None:
    """`one` and `two` are compilers that print what they are given, `none` is not there."""
    real = tmp_path / "real"
    real.mkdir()
    for name in ("one", "two"):
        (real / name).write_text(f'#!/bin/sh\necho {name} "$@" cache=$CCACHE_PATH\n')
        (real / name).chmod(0o755)
    wraps = [
        action(kind="flags", programs=["one", "none"], flags=["-Wno-error=a", "-x"]),
        action(kind="flags", programs=["one"], flags=["-y"]),
    ]
    commands = remedied_commands(("one -c a.c -Werror; two; command -v none || echo no", "one"), wraps)
    assert len(commands) == 4
    script = "\n".join(commands).replace(WRAPPERS, str(tmp_path / "wrappers"))
    path = f"{real}:/usr/bin:/bin"
    said = subprocess.run(
        ["sh", "-eu", "-c", script], env={"PATH": path}, capture_output=True, text=True, check=True
    ).stdout
    assert said.splitlines() == [
        f"one -c a.c -Werror -y -Wno-error=a -x cache={path}",
        f"two cache={path}",
        "no",
        f"one -y -Wno-error=a -x cache={path}",
    ]


@each(
    "done",
    [
        {"kind": "flags", "programs": ["a b"], "flags": ["-x"]},
        {"kind": "flags", "programs": ["../cc"], "flags": ["-x"]},
        {"kind": "flags", "programs": ["cc"], "flags": ["-x; rm"]},
        {"kind": "flags", "programs": ["cc"], "flags": ["$(x)"]},
        {"kind": "flags", "programs": ["cc"], "flags": ["-x\n"]},
    ],
)
def test_flags_and_compilers_of_a_strangers_lock_are_plain_words(done: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        action(**done)


def test_a_flag_whose_place_nothing_filled_in_is_refused() -> None:
    done = action(kind="flags", programs=["cc"], flags=["-Wno-error={warning}"])
    lock = mended(lock_of("llama-vulkan", "gfx1151"), remedy("llama.cpp", done))
    with pytest.raises(InputError, match="cannot be part of a build"):
        make_plan(lock, builtin_catalog())


def test_a_wrapper_changes_the_key_of_its_step_and_no_other() -> None:
    lock = lock_of("llama-vulkan", "gfx1151")
    done = action(kind="flags", programs=["cc"], flags=["-Wno-error=x"])
    before, after = step(lock, "llama.cpp"), step(mended(lock, remedy("llama.cpp", done)), "llama.cpp")
    assert before.key != after.key
    assert {one.key for one in before.inputs} == {one.key for one in after.inputs}
