"""Keys: over everything that can change a step's output, and nothing else."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.making import deb, digest, small_plan

from rocbase.model import canonical_json
from rocwheel_samples.tables import each
from rocwright.model.edits import Edit
from rocwright.model.steps import (
    Action,
    BaseAction,
    FetchAction,
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
RULE = Edit.model_validate(
    {"file": "a.c", "rule": {"language": "c", "pattern": "x", "rewrite": "y"}, "why": "it must be y"}
)
ACTIONS: list[Action] = [
    FetchAction(files=(deb("one"), deb("two"))),
    BaseAction(suite="sid", architecture="amd64"),
    TreeAction(subdir="src", series=("one.patch",), packaging=("headers",), edits=(EDIT, RULE), version="1"),
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


ORIGIN = "where a file comes from cannot change it: its sha256 is checked"
MADE_OF_PACKAGES = "a root that is made of packages alone reads nothing of this"
NOTE = "a word for people"
CHOOSES = "it decides whether an edit is applied; the plan has those that are"
NO_OUTPUT = "it can stop a step, or make it faster, and not change what comes out"
SAME: dict[str, str] = {
    "FilePin.size": ORIGIN,
    "FilePin.origin": ORIGIN,
    "FetchAction.files, order": "the outputs are sorted by name, as the key is",
    **{f"BaseAction of debian.{name}": MADE_OF_PACKAGES for name in ("image", "install", "env", "forget")},
    "BaseAction of image.customize": "only a root that is made of packages alone is customized",
    "TreeAction.version": CHOOSES,
    **{f"Edit.{name}": CHOOSES for name in ("versions", "absorbed", "absent", "places", "targets", "beside")},
    **{f"Edit.{name}": NOTE for name in ("why", "source", "upstream", "confidence")},
    "Edit.diff": "the name of a patch, whose text is in the key",
    **{f"RunAction.{name}": NO_OUTPUT for name in ("guard", "compiler_reads", "resume", "split")},
    **{f"Step.{name}": NOTE for name in ("name", "component", "about")},
    "Step.resources": NO_OUTPUT,
    "Step.domain": "steps of one domain would compile the same; who says which it is signs the definition",
}
"""Fields that leave a key as it is, and why the output is the same."""


def changed(value: Any) -> Iterator[tuple[str, Any]]:
    """Other values than this one, each with the field that differs, or "" for the value itself."""
    match value:
        case BaseModel():
            sort = f"{type(value).__name__}{f' of {value.family}' if isinstance(value, BaseAction) else ''}"
            for name in type(value).model_fields.keys() - {"kind", "family"}:
                field = f"{sort}.{name}"
                for label, other in changed(getattr(value, name)):
                    below = label[:1].isalpha()
                    name_of = field if below and field in SAME else label if below else field + label
                    yield name_of, value.model_copy(update={name: other})
        case str():
            yield "", f"{value}x"
        case int() | float():
            yield "", value + 1
        case dict():
            yield "", {**value, "more": "x"}
            yield from (("", {**value, name: f"{each}x"}) for name, each in value.items())
        case tuple():
            yield "", (*value, *(value[:1] or ("x",)))
            if len(value) > 1:
                yield ", order", value[::-1]
            for place, each in enumerate(value):
                yield "", (*value[:place], *value[place + 1 :])
                yield from (
                    (label, (*value[:place], other, *value[place + 1 :])) for label, other in changed(each)
                )
        case None:
            yield "", "x"


def models(annotation: Any) -> set[type[BaseModel]]:
    """The models that a type is made of, but where a file comes from."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        below = (models(one.annotation) for name, one in annotation.model_fields.items() if name != "origin")
        return {annotation}.union(*below)
    return set[type[BaseModel]]().union(*map(models, get_args(annotation)))


@pytest.mark.filterwarnings("ignore:Pydantic serializer")
def test_each_field_of_each_action_changes_the_key_or_has_a_reason_not_to() -> None:
    seen: dict[str, set[bool]] = {}
    for action in ACTIONS:
        step = step_of(action)
        for field, other in changed(step):
            # a copy may hold the key of the step that it is made of
            again = Step.model_construct(**{name: getattr(other, name) for name in Step.model_fields})
            seen.setdefault(field, set()).add(again.key != step.key)
    assert {field for field, moves in seen.items() if moves != {True}} == SAME.keys()
    assert all(seen[field] == {False} for field in SAME)
    fields = {field.partition(".")[0].partition(" ")[0] for field in seen}
    assert fields == {one.__name__ for one in models(Step)} - {"Resources", "About"}


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
