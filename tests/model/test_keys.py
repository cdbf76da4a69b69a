"""Keys: over everything that can change a step's output, and nothing else."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.making import deb, digest, small_plan

from rocwheel.model import canonical_json
from rocwheel_samples.tables import each
from rocwright.model.edits import Edit
from rocwright.model.steps import (
    Action,
    BaseAction,
    FetchAction,
    GitOrigin,
    ImageAction,
    IndexOrigin,
    Input,
    OutputSpec,
    Resources,
    RunAction,
    Step,
    TreeAction,
)

GOLDEN = {
    "packages/build": "6a9130d8b8ac29de24b493df1af24d018e031925bda38459f94540ba429f2a59",
    "root/build": "f086062a4625b6be37ab8cdd3c03091d64a18d37939d722f3ce030345fcd283f",
    "source/hello": "303d37cfbe8a7496bd8e0a57e8472a4afaee08d5777df60d9e4d006e3afaf584",
    "tree/hello": "227493b05749325fe670fa78c6b9f4af2fa9cd6e2319899ad7b9f035b25b41b8",
    "hello": "20d85836a0b8fca3cece1612f8a1c7775d2fd999868cf51689b8d2f4df84f7cb",
}
"""Keys of `making.small_plan`.

They change only when the meaning of a step's definition changes, and then KEY_SCHEMA must be raised in the
same commit: everything that anybody has built is built anew. A refactoring that changes them is wrong.
"""


def test_the_keys_of_a_plan_are_those_written_down_here() -> None:
    assert {step.name: step.key for step in small_plan().steps} == GOLDEN


EDIT = Edit.model_validate({"file": "a.c", "regex": "x", "with": "y", "why": "it must be y"})
ACTIONS: list[Action] = [
    FetchAction(files=(deb("one"), deb("two"))),
    BaseAction(suite="sid", architecture="amd64"),
    TreeAction(subdir="src", series=("one.patch",), edits=(EDIT,)),
    RunAction(
        commands=("make",),
        env={"A": "1"},
        outputs=(OutputSpec(name="out", pattern="*.whl"),),
        guard=("torch",),
        compiler_reads=("usr/lib/*.bc",),
        resume=1,
        split=1,
    ),
    ImageAction(
        name="image",
        reference="rocwright/image:1",
        prefix="/opt/x",
        entrypoint=("/opt/x/y",),
        env={"A": "1"},
        labels={"l": "1"},
        architecture="amd64",
    ),
    BaseAction(
        family="image",
        suite="1",
        architecture="amd64",
        image=digest("image"),
        install=("install", "all"),
        env={"A": "1"},
        forget=("/var/log/*",),
    ),
]
Changes = dict[str, list[dict[str, object]]]
CHANGES: Changes = {
    "fetch": [
        {"files": (deb("one"),)},
        {"files": (deb("one"), deb("two", "2.0-1"))},
        {"files": (deb("one"), deb("two").model_copy(update={"filename": "two.asc"}))},
        {"pending": "git URL at a commit"},
    ],
    "base": [{"suite": "trixie"}, {"architecture": "arm64"}, {"customize": ("ldconfig",)}],
    "base of an image": [
        {"suite": "2"},
        {"architecture": "arm64"},
        {"image": digest("another")},
        {"install": ("install", "some")},
        {"env": {}},
        {"forget": ()},
    ],
    "tree": [
        {"subdir": "other"},
        {"series": ()},
        {"series": ("two.patch",)},
        {"packaging": ("headers",)},
        {"edits": ()},
        {"edits": (EDIT.model_copy(update={"file": "b.c"}),)},
        {"edits": (EDIT.model_copy(update={"regex": "z"}),)},
        {"edits": (EDIT.model_copy(update={"replacement": "z"}),)},
        {"edits": (EDIT.model_copy(update={"expect": 2}),)},
        {"edits": (EDIT.model_copy(update={"marker": "z"}),)},
        {"edits": (EDIT.model_copy(update={"line_ends": "crlf"}),)},
        {"edits": (EDIT, EDIT)},
    ],
    "run": [
        {"commands": ("make all",)},
        {"commands": ("make", "make")},
        {"env": {"A": "2"}},
        {"env": {"A": "1", "B": "2"}},
        {"env": {}},
        {"outputs": (OutputSpec(name="out", pattern="*"),)},
        {"outputs": (OutputSpec(name="other", pattern="*.whl"),)},
        {"install": ("torch",)},
        {"python": "python3.13"},
    ],
    "image": [
        {"name": "other"},
        {"reference": "other:1"},
        {"prefix": "/usr"},
        {"entrypoint": ()},
        {"env": {}},
        {"labels": {"l": "2"}},
        {"architecture": "arm64"},
    ],
}
FREE: Changes = {
    # a base that is made of packages alone has no image, whatever is said of one
    "base": [{"image": digest("image")}, {"install": ("x",)}, {"env": {"A": "1"}}, {"forget": ("x",)}],
    "base of an image": [{"customize": ("ldconfig",)}],
    "fetch": [
        {"files": (deb("two"), deb("one"))},
        {"files": tuple(
            pin.model_copy(update={"origin": GitOrigin(url="u", commit="0" * 40), "size": 1})
            for pin in (deb("one"), deb("two"))
        )},
    ],
    "tree": [
        {"edits": (EDIT.model_copy(update={"why": "a better reason"}),)},
        {"edits": (EDIT.model_copy(update={"versions": "<2"}),)},
        {"edits": (EDIT.model_copy(update={"absorbed": ">=2", "source": "s", "upstream": "u"}),)},
        {"edits": (EDIT.model_copy(update={"confidence": "c", "places": ("git",), "targets": ("a",)}),)},
        {"edits": (EDIT.model_copy(update={"beside": {"torch": "<2"}, "absent": "a"}),)},
        {"version": "2.0"},
    ],
    "run": [
        {"guard": ()}, {"guard": ("torch", "numpy")}, {"compiler_reads": ()}, {"resume": 0}, {"split": 0},
    ],
}  # fmt: skip


def step_of(action: Action) -> Step:
    return Step(
        name="step",
        component="component",
        action=action,
        inputs=(Input(name="root", key=digest("root"), output="root"),),
    )


def sort_of(action: Action) -> str:
    """The kind of an action, and which of the two sorts of bases it is."""
    return "base of an image" if isinstance(action, BaseAction) and action.image else action.kind


def cases(table: Changes) -> list[object]:
    return [
        pytest.param(action, change, id=f"{action.kind}-{'-'.join(change)}-{count}")
        for action in ACTIONS
        for count, change in enumerate(table.get(sort_of(action), []))
    ]


@each(("action", "change"), cases(CHANGES))
def test_each_thing_that_can_change_the_output_changes_the_key(
    action: Action, change: dict[str, object]
) -> None:
    assert step_of(action.model_copy(update=change)).key != step_of(action).key


@each(("action", "change"), cases(FREE))
def test_what_cannot_change_the_output_leaves_the_key(action: Action, change: dict[str, object]) -> None:
    assert step_of(action.model_copy(update=change)).key == step_of(action).key


@each("action", ACTIONS, ids=sort_of)
def test_every_field_of_an_action_is_said_to_change_its_key_or_not_to(action: Action) -> None:
    decided = {
        name for table in (CHANGES, FREE) for change in table.get(sort_of(action), []) for name in change
    }
    assert decided == set(type(action).model_fields) - {"kind", "family"}


DIFF = Edit.model_validate({"diff": "a.patch", "patch": "--- a/f\n", "why": "it must be so"})


def test_a_diff_is_known_by_its_text_and_not_by_its_name() -> None:
    tree = step_of(TreeAction(edits=(DIFF,)))
    renamed = step_of(TreeAction(edits=(DIFF.model_copy(update={"diff": "b.patch"}),)))
    other = step_of(TreeAction(edits=(DIFF.model_copy(update={"patch": "--- a/g\n"}),)))
    assert renamed.key == tree.key
    assert other.key != tree.key


def test_an_edit_has_the_key_that_it_had_when_there_was_one_kind_of_edit() -> None:
    assert EDIT.material() == {"file": "a.c", "regex": "x", "replacement": "y", "expect": 1}


def test_names_and_resources_of_a_step_are_not_in_its_key() -> None:
    step = step_of(ACTIONS[3])
    other = step.model_copy(
        update={
            "name": "renamed",
            "component": "other",
            "resources": Resources(cores=8, memory=1, disk=2, limit=3),
        }
    )
    assert other.key == step.key


def test_a_step_that_was_stored_with_its_resources_as_needs_still_reads() -> None:
    step = step_of(ACTIONS[3]).model_copy(update={"resources": Resources(cores=8, memory=1)})
    old = json.loads(step.model_dump_json(by_alias=True))
    old["needs"] = old.pop("resources")
    assert Step.model_validate_json(json.dumps(old)) == step


@each(
    "change",
    [{"name": "src"}, {"key": digest("another root")}, {"output": "*"}],
    ids=lambda one: next(iter(one)),
)
def test_another_input_is_another_key(change: dict[str, str]) -> None:
    step = step_of(ACTIONS[3])
    changed = step.model_copy(update={"inputs": (step.inputs[0].model_copy(update=change),)})
    assert changed.key != step.key


def test_where_a_file_comes_from_does_not_matter_but_which_file_it_is_does() -> None:
    pin = deb("one")
    index = IndexOrigin(project="one", version="1")
    moved = step_of(FetchAction(files=(pin.model_copy(update={"origin": index}),)))
    other = step_of(FetchAction(files=(pin.model_copy(update={"sha256": digest("other")}),)))
    assert moved.key == step_of(FetchAction(files=(pin,))).key
    assert other.key != moved.key


words = st.text(string.printable, max_size=8)
runs = st.builds(
    RunAction,
    commands=st.lists(words, max_size=3).map(tuple),
    env=st.dictionaries(words, words, max_size=3),
    outputs=st.lists(st.builds(OutputSpec, name=words, pattern=words), max_size=2).map(tuple),
)


@settings(max_examples=200, deadline=None)
@given(one=runs, other=runs)
def test_two_definitions_have_one_key_exactly_when_they_are_equal(one: RunAction, other: RunAction) -> None:
    assert (step_of(one).key == step_of(other).key) == (one == other)


@settings(max_examples=50, deadline=None)
@given(action=runs)
def test_a_definition_keeps_its_key_when_it_is_written_and_read(action: RunAction) -> None:
    step = step_of(action)
    assert Step.model_validate_json(step.model_dump_json(by_alias=True)).key == step.key


@each("action", ACTIONS, ids=sort_of)
def test_every_kind_of_step_keeps_its_key_when_it_is_written_and_read(action: Action) -> None:
    step = step_of(action)
    assert Step.model_validate_json(step.model_dump_json(by_alias=True)) == step


@each("action", ACTIONS, ids=sort_of)
def test_what_a_key_is_made_of_is_what_its_json_says(action: Action) -> None:
    """Other tools can compute it from the JSON; a tuple, a path or an enumeration would be something else."""
    assert action.material() == json.loads(json.dumps(action.material()))


def test_the_canonical_form_has_one_spelling() -> None:
    assert canonical_json({"ü": "\u2028", "a": [1, 2.5, True, None]}) == (
        b'{"a":[1,2.5,true,null],"\\u00fc":"\\u2028"}'
    )


def test_what_is_to_be_fetched_is_in_the_key_by_its_name() -> None:
    assert FetchAction(files=(), pending="numpy of the index").material()["pending"] == "numpy of the index"
    assert "pending" not in FetchAction(files=(deb("one"),)).material()


@each(("change", "own"), [({}, False), ({"install": ("a",)}, True), ({"python": "python3.12"}, True)])
def test_a_step_has_a_python_of_its_own_for_what_it_installs_or_where_it_is_named(
    change: dict[str, object], own: bool
) -> None:
    assert RunAction(commands=("make",), outputs=()).model_copy(update=change).own_python is own


def test_equal_inputs_give_an_equal_content_key_whatever_steps_made_them() -> None:
    made = {"root": [digest("bytes")]}
    one = step_of(ACTIONS[3])
    other = one.model_copy(update={"inputs": (Input(name="root", key=digest("elsewhere"), output="root"),)})
    assert one.key != other.key
    assert one.content_key(made) == other.content_key(made)
    assert one.content_key(made) != one.content_key({"root": [digest("other bytes")]})


def test_the_same_inputs_under_each_others_names_give_another_content_key() -> None:
    """Commands find an input by its name: what they make of two that changed places is another thing."""
    one, other = ([digest("one")], [digest("other")])
    both = tuple(Input(name=name, key=digest(name), output="out") for name in ("a", "b"))
    changed = tuple(Input(name=name, key=digest(name), output="out") for name in ("b", "a"))
    step = step_of(ACTIONS[3]).model_copy(update={"inputs": both})
    renamed = step.model_copy(update={"inputs": changed})
    assert step.content_key({"a": one, "b": other}) != renamed.content_key({"b": one, "a": other})
    assert step.content_key({"a": one, "b": other}) != step.content_key({"a": other, "b": one})


def test_a_step_without_inputs_has_one_key_for_definition_and_content() -> None:
    step = small_plan().steps[0]
    assert step.content_key({}) == step.key


def test_a_copy_with_another_action_or_other_inputs_has_its_own_key() -> None:
    tree, step = small_plan().steps[-2:]
    assert step.inputs
    assert step.key == step.model_copy(update={"name": "other"}).key
    inputless, other = step.model_copy(update={"inputs": ()}), step.model_copy(update={"action": tree.action})
    assert inputless.key == Step(name="x", component="x", action=step.action).key != step.key
    assert other.key == Step(name="x", component="x", action=tree.action, inputs=step.inputs).key != step.key
