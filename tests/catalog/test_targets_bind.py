"""What is known of GPUs binds: each fact, taken out, changes an environment, a check, a verdict or a name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.catalog.walks import walks
from tests.diagnosis.machine.machines import POLARIS, machine

from rocbase.errors import ConflictError, InputError
from rocwheel.wheels.choose import Target as Gpu
from rocwheel.wheels.detect import target_of_version
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel.wheels.overrides import Overrides
from rocwheel.wheels.runs_on import runs_on
from rocwheel_samples.fatbin import entry_id, fatbin, gpu_elf, host_elf, plain_bundle, write_wheel
from rocwheel_samples.tables import each
from rocwright.catalog.environment import environment, for_recipe
from rocwright.catalog.load import Catalog, builtin_catalog, kept_from_builds
from rocwright.catalog.target import Quirk, Target
from rocwright.catalog_lint.for_people import ForPeopleFile, marked
from rocwright.diagnosis.facts import host_facts
from rocwright.diagnosis.machine.model import Machine
from rocwright.diagnosis.machine.tree import Tree
from rocwright.doctor.able import able, lacking
from rocwright.doctor.findings.driver import driver
from rocwright.doctor.needs import need_of
from rocwright.doctor.this_machine import here
from rocwright.home import Home
from rocwright.plan.resolve.gpus import targets_named
from rocwright.verify.suites import SuiteOrder, aimed

CATALOG, FACTS = builtin_catalog(), host_facts()
TARGETS = list(CATALOG.targets.values())
QUIRKS = [
    pytest.param(target, number, id=f"{target.name}-{one.variable}-{one.scope}")
    for target in TARGETS
    for number, one in enumerate(target.quirk)
]
TYPES = Path(CATALOG.file("checks/torch/smoke/tolerance.py")).read_text()
NEEDED = Path(CATALOG.file("checks/torch/smoke/cases/__init__.py")).read_text()


def other(target: Target, **change: object) -> Catalog:
    """The catalog with another word on one target."""
    return replace(CATALOG, targets={**CATALOG.targets, target.name: target.model_copy(update=change)})


def without(rows: tuple[Quirk, ...], number: int) -> tuple[Quirk, ...]:
    return (*rows[:number], *rows[number + 1 :])


def told(catalog: Catalog, target: str, scope: str) -> list[tuple[str, str, str]]:
    found = environment(catalog, catalog.target(target), "build" if scope == "build" else "run")
    return [(one.variable, one.value, one.need) for one in found]


@walks("targets.toml", *(f"target.quirk.{one}" for one in ("variable", "value", "scope", "need", "recipes")))
@each(("target", "number"), QUIRKS)
def test_a_quirk_that_is_taken_out_changes_an_environment(target: Target, number: int) -> None:
    quirk, rest = target.quirk[number], other(target, quirk=without(target.quirk, number))
    assert told(CATALOG, target.name, quirk.scope) != told(rest, target.name, quirk.scope)
    assert bool(quirk.recipes) == (quirk.scope == "build"), "a variable for builds that reaches none"
    for name in quirk.recipes:
        assert for_recipe(CATALOG, [target.name], name) != for_recipe(rest, [target.name], name)


@walks("targets.toml", *(f"every.{one}" for one in ("variable", "value", "scope", "need", "recipes")))
@each("number", range(len(CATALOG.every)))
def test_a_quirk_of_every_target_that_is_taken_out_changes_every_environment(number: int) -> None:
    quirk = CATALOG.every[number]
    rest = replace(CATALOG, every=without(tuple(CATALOG.every), number))
    for target in CATALOG.targets:
        assert told(CATALOG, target, quirk.scope) != told(rest, target, quirk.scope)
        for name in quirk.recipes:
            assert for_recipe(CATALOG, [target], name) != for_recipe(rest, [target], name)


def test_two_gpus_that_want_another_value_each_are_not_built_for_at_once() -> None:
    said = Quirk(variable="X", value="7", scope="build", recipes=("pytorch",), reason="r", source="s")
    mine, yours = (
        CATALOG.targets[gpu].model_copy(update={"quirk": (said.model_copy(update={"value": value}),)})
        for gpu, value in (("gfx803", "7"), ("gfx1151", "8"))
    )
    both = replace(CATALOG, targets={**CATALOG.targets, "gfx803": mine, "gfx1151": yours})
    with pytest.raises(ConflictError, match="pytorch cannot be built for gfx803 and gfx1151 at once"):
        for_recipe(both, ["gfx803", "gfx1151"], "pytorch")


@walks("targets.toml", "run_only.variables", "run_only.override")
@each("number", range(len(CATALOG.run_only)))
def test_a_variable_that_only_runs_may_see_is_kept_from_builds_by_its_row_alone(number: int) -> None:
    row = CATALOG.run_only[number]
    rest = replace(CATALOG, run_only=[one for one in CATALOG.run_only if one is not row])
    name = row.override or row.variables.replace("*", "X")
    assert kept_from_builds(CATALOG, name)
    assert not kept_from_builds(rest, name)
    assert CATALOG.override_variable == row.override != rest.override_variable


# kernels


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A machine with one card, whatever it is."""
    root = machine(tmp_path_factory.mktemp("machine"), POLARIS)
    with Tree(root) as tree:
        return here(tree, CATALOG, FACTS, Home(root / "home"))


def judged(around: Machine, catalog: Catalog, target: str, kernel: str) -> list[tuple[str, str]]:
    """What is said of a target with a kernel."""
    [gpu] = around.gpus
    seen = around.model_copy(
        update={
            "gpus": (gpu.model_copy(update={"target": target}),),
            "driver": around.driver.model_copy(update={"kernel": kernel}),
        }
    )
    return [(one.name, one.grade) for one in driver(seen, catalog, FACTS, tuple(CATALOG.stacks))]


OLD = "3.0"
"""A kernel that no card here was tried with."""

KERNELS = [
    pytest.param(target, kind, text, id=f"{target.name}-{kind}-{text}")
    for target in TARGETS
    for kind in ("kernel_ok", "kernel_bad")
    for text in getattr(target.host, kind)
]


@walks("targets.toml", "target.host.kernel_ok", "target.host.kernel_bad")
@pytest.mark.parametrize(("target", "kind", "text"), KERNELS)
def test_a_kernel_that_is_taken_out_changes_what_doctor_says_of_one(
    around: Machine, target: Target, kind: str, text: str
) -> None:
    rest = tuple(one for one in getattr(target.host, kind) if one != text)
    catalog = other(target, host=target.host.model_copy(update={kind: rest}))
    versions = re.findall(r"[0-9]+(?:\.[0-9]+)*", text)
    kernels = [OLD, *(one for version in versions for one in (version, f"{version}.1"))]
    assert any(
        judged(around, CATALOG, target.name, kernel) != judged(around, catalog, target.name, kernel)
        for kernel in kernels
    ), "another entry says the same of these kernels: it is known in vain"


# overrides


def spoofs() -> Iterator[object]:
    for target in TARGETS:
        for spoof in target.override.spoof if target.override else ():
            yield pytest.param(target, spoof, id=f"{target.name}-{spoof}")


def wheel_of(folder: Path, target: str) -> Path:
    flags = next(number for number, name in machines().items() if name == target)
    code = host_elf(fatbin([plain_bundle([(entry_id(target), gpu_elf(flags))])]))
    return write_wheel(folder / "x.whl", {"x.so": code})


@walks("targets.toml", "target.override.spoof", "target.override.identity")
@walks("overrides.toml", "variable", "override.target", "override.spoof", "override.identity")
@pytest.mark.parametrize(("target", "spoof"), list(spoofs()))
def test_a_target_that_a_card_passes_for_changes_the_verdict_on_its_code(
    tmp_path: Path, target: Target, spoof: str
) -> None:
    assert target.override
    path, known = wheel_of(tmp_path, spoof), dict(CATALOG.overrides.by_target)
    [whole] = runs_on(path, Gpu(target.name), CATALOG.overrides)
    mine = target.override.model_copy(
        update={"spoof": tuple(one for one in target.override.spoof if one != spoof)}
    )
    rest = Overrides(CATALOG.override_variable, known | {target.name: mine})
    [left] = runs_on(path, Gpu(target.name), rest)
    assert whole.verdict != left.verdict
    # and the identity of who is passed for is what the variable is set to
    assert whole.setting == {CATALOG.override_variable: known[spoof].identity}


# what a target has not, and what else is known of it


@walks("targets.toml", "target.features")
@pytest.mark.parametrize(
    ("target", "feature"),
    [pytest.param(one, name, id=f"{one.name}-{name}") for one in TARGETS for name in one.features],
)
def test_a_feature_leaves_out_operations_or_a_stack_or_asks_for_something_of_the_bus(
    for_people: ForPeopleFile, target: Target, feature: str
) -> None:
    acts = feature in target.lacks and (
        f'"{feature}"' in NEEDED
        or f'"{feature}"' in TYPES
        or any(lacking(stack, target) for stack in CATALOG.stacks.values() if feature in stack.components)
    )
    acts = acts or any((one.feature, one.needed) == (feature, target.features[feature]) for one in FACTS.link)
    assert acts != marked(for_people, "targets.toml", f"target.features.{feature}")


@walks("targets.toml", "target.wave")
@each("target", TARGETS, ids=lambda one: one.name)
def test_the_wave_is_what_kernels_are_compiled_with(target: Target) -> None:
    named = aimed(SuiteOrder(suites=("triton",)), [target]).targets
    rest = aimed(SuiteOrder(suites=("triton",)), [target.model_copy(update={"wave": 0})]).targets
    assert (named != rest) == bool(target.wave)


def names_of(target: Target) -> Iterator[tuple[str, str]]:
    for field in ("products", "also", "codenames", "pci_ids"):
        for name in getattr(target, field):
            yield field, name
    if target.therock:
        for name in target.therock.families:
            yield "therock", name


def found(text: str, catalog: Catalog) -> list[str]:
    try:
        return [one.name for one in targets_named(text, catalog)]
    except InputError:
        return []


@walks(
    "targets.toml",
    *(f"target.{one}" for one in ("name", "products", "also", "codenames", "pci_ids", "therock.families")),
)
@walks("gpu_names.toml", *(f"gpu.{one}" for one in ("target", "products", "also", "codenames", "pci_ids")))
@each("target", TARGETS, ids=lambda one: one.name)
def test_every_name_finds_its_target(target: Target) -> None:
    for _, name in names_of(target):
        assert target.name in found(name, CATALOG), name


@walks("targets.toml", "target.kfd_version")
@each("target", TARGETS, ids=lambda one: one.name)
def test_the_version_that_the_kernel_tells_is_the_targets(target: Target) -> None:
    assert target_of_version(target.kfd_version) == target.name


@walks("targets.toml", "target.takes.jobs")
def test_jobs_that_building_takes_bound_those_of_a_build(around: Machine) -> None:
    for target in (one for one in TARGETS if one.takes.jobs):
        free = other(target, takes=target.takes.model_copy(update={"jobs": 0}))
        assert jobs(around, CATALOG, target.name) != jobs(around, free, target.name)


def jobs(around: Machine, catalog: Catalog, target: str) -> list[int]:
    [gpu] = around.gpus
    seen = around.model_copy(
        update={"gpus": (gpu.model_copy(update={"target": target}),), "processors": 64, "memory": None}
    )
    needs = {(target, name): need_of(seen, catalog, name, target, None) for name in CATALOG.stacks}
    return [one.jobs for one in able(seen, catalog, CATALOG.stacks, [], [], needs)]
