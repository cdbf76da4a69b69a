"""Trust domains: which steps share a compiler cache, and which never do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError
from tests.making import builtin, deb, index_pin, lock_of, small_plan, with_sdist

from rocwheel_samples.tables import each
from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.model.edits import Edit
from rocwright.model.steps import RunAction, Step
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock

STACK, COMPONENT = "torch-extensions", "torchvision"


def domains(lock: Lock, catalog: Catalog | None = None) -> dict[str, str]:
    """The trust domain of each step that runs commands."""
    plan = make_plan(lock, catalog or builtin_catalog())
    return {step.name: step.domain for step in plan.steps if step.kind == "run"}


def recipe(**changes: Any) -> Catalog:
    """The catalog with another recipe of the component."""
    catalog = builtin_catalog()
    changed = catalog.component(COMPONENT).model_copy(update=changes)
    return replace(catalog, components={**catalog.components, COMPONENT: changed})


def edit(**more: Any) -> Edit:
    return Edit.model_validate({"file": "f", "regex": "r", "with": "w", "why": "y"} | more)


@each("stack", sorted(builtin_catalog().stacks))
def test_each_step_that_runs_commands_has_a_domain_and_no_two_components_share_one(stack: str) -> None:
    steps = [one for one in make_plan(lock_of(stack), builtin_catalog()).steps if one.kind == "run"]
    assert all(step.domain for step in steps)
    owners: dict[str, str] = {}
    assert all(owners.setdefault(step.domain, step.component) == step.component for step in steps)


@each("gpus", [("gfx1103",), ("gfx803",), ("gfx803", "gfx1103")])
def test_the_gpus_are_no_part_of_it(gpus: tuple[str, ...]) -> None:
    catalog = recipe(edit=(edit(targets=("gfx803",)), edit(file="g", **{"with": "{targets}"})))
    asked = [domains(lock_of(STACK, *one), catalog) for one in (("gfx1151",), gpus)]
    assert asked[0] == asked[1]
    smoke = [domains(lock_of("gfx-smoke", *one)) for one in (("gfx1151",), gpus)]
    assert smoke[0] == smoke[1]


def test_what_a_machine_needs_for_it_is_no_part_of_it() -> None:
    resources = builtin_catalog().component(COMPONENT).resources.model_copy(update={"memory_per_job": 1})
    lock = lock_of(STACK)
    assert domains(lock, recipe(resources=resources, summary="other")) == domains(lock)


@each(
    "changes",
    [
        {"run": ("make",)},
        {"setup": ("true",), "run": ("true",)},
        {"prepare": ("true",)},
        {"env": {"CC": "./cc"}},
        {"edit": (edit(),)},
        {"edit": (edit(targets=("gfx803",)),)},
        {"edit": (edit(phase="prepared"),)},
    ],
    ids=["commands", "setup", "preparation", "environment", "edit", "edit of another GPU", "later edit"],
)
def test_another_recipe_of_that_name_is_another_domain(changes: dict[str, Any]) -> None:
    lock = lock_of(STACK)
    before, after = domains(lock), domains(lock, recipe(**changes))
    assert before[COMPONENT] != after[COMPONENT]
    assert before["torchaudio"] == after["torchaudio"]


@each("what", ["files", "downloads", "subdir", "series"])
def test_other_sources_are_another_domain(what: str) -> None:
    lock = lock_of(STACK)
    changes = {
        "files": (builtin("other"),),
        "downloads": (builtin("other"),),
        "subdir": "s",
        "series": ("p",),
    }
    components = tuple(
        one.model_copy(update={what: changes[what]}) if one.name == COMPONENT else one
        for one in lock.components
    )
    assert domains(lock.model_copy(update={"components": components}))[COMPONENT] != domains(lock)[COMPONENT]


def test_another_root_is_another_domain() -> None:
    """A hostile root has a compiler of its own, whose objects no honest project may read."""
    lock = with_sdist(lock_of("pytorch"))
    wrapped = (deb("binutils", "2-wrapped"),)
    roots = tuple(one.model_copy(update={"packages": wrapped}) for one in lock.roots)
    before, after = domains(lock), domains(lock.model_copy(update={"roots": roots}))
    assert before.keys() == after.keys()
    assert not {*before.values()} & {*after.values()}


def test_an_archive_under_another_name_is_another_domain() -> None:
    lock = lock_of(STACK)
    renamed = tuple(
        one.model_copy(update={"files": [pin.model_copy(update={"filename": "x.asc"}) for pin in one.files]})
        for one in lock.components
    )
    before, after = domains(lock), domains(lock.model_copy(update={"components": renamed}))
    assert not {*before.values()} & {*after.values()}


def test_other_wheels_that_are_installed_are_another_domain() -> None:
    lock = with_sdist(lock_of("pytorch"))
    assert lock.python is not None
    other = lock.python.model_copy(update={"files": (index_pin("a-1-py3-none-any.whl", "a", "1"),)})
    before, after = domains(lock), domains(lock.model_copy(update={"python": other}))
    steps = {step.name: step.action for step in make_plan(lock, builtin_catalog()).steps}
    installs = {
        name: isinstance(action := steps[name], RunAction) and "python" in action.install for name in before
    }
    assert {True, False} == set(installs.values())
    assert installs == {name: after[name] != domain for name, domain in before.items()}


def test_a_component_that_is_built_passes_its_domain_on_to_what_installs_it() -> None:
    lock = lock_of("vllm")
    catalog = builtin_catalog()
    torch = catalog.component("pytorch").model_copy(update={"run": ("make",)})
    other = replace(catalog, components={**catalog.components, "pytorch": torch})
    before, after = domains(lock), domains(lock, other)
    assert {"pytorch", "vllm"} <= {name for name in before if before[name] != after[name]}


def test_a_domain_is_in_no_key_and_is_a_sha256() -> None:
    step = small_plan().steps[-1]
    assert step.model_copy(update={"domain": "a" * 64}).key == step.key
    data = step.model_dump(mode="json", by_alias=True)
    assert Step.model_validate(data | {"domain": "a" * 64}).domain == "a" * 64
    for wrong in ("../other", "a" * 63, "A" * 64, "a" * 64 + "\n"):
        with pytest.raises(ValidationError):
            Step.model_validate(data | {"domain": wrong})
