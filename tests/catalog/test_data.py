"""The catalog that comes with rocwright: every fact fits every other."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from rocwheel.wheels.detect import target_of_version
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.model import Component
from rocwright.catalog.place import BuiltinPlace, DebianPlace
from rocwright.plan.values import chosen_values, expand

CATALOG = builtin_catalog()


def each(table: str) -> Callable[..., pytest.MarkDecorator]:
    rows = getattr(CATALOG, table)
    return pytest.mark.parametrize("name", sorted(rows))


def test_every_file_of_the_catalog_is_read() -> None:
    for folder, table in (
        ("bases", CATALOG.bases),
        ("components", CATALOG.components),
        ("stacks", CATALOG.stacks),
    ):
        assert {path.stem for path in (DATA / folder).glob("*.toml")} == set(table)


def test_the_three_stacks_of_the_first_milestone_are_there() -> None:
    assert {"llama-vulkan", "torch-extensions", "gfx-smoke"} <= set(CATALOG.stacks)


# targets


@each("targets")
def test_a_targets_kernel_version_gives_its_name(name: str) -> None:
    assert target_of_version(CATALOG.targets[name].kfd_version) == name


@each("targets")
def test_a_target_has_a_source_and_products_and_well_written_pci_ids(name: str) -> None:
    target = CATALOG.targets[name]
    assert target.source
    assert target.products
    assert all(re.fullmatch(r"1002:[0-9a-f]{4}", pci) for pci in target.pci_ids)


def test_no_pci_id_belongs_to_two_targets() -> None:
    every = [pci for target in CATALOG.targets.values() for pci in target.pci_ids]
    assert len(every) == len(set(every))


def test_a_kernel_version_is_read_in_hexadecimal_where_it_must() -> None:
    assert target_of_version(90010) == "gfx90a"
    assert target_of_version(110501) == "gfx1151"
    assert target_of_version(80003) == "gfx803"


# stacks and bases


@each("stacks")
def test_a_stack_names_only_what_is_there(name: str) -> None:
    stack = CATALOG.stacks[name]
    assert stack.components
    assert stack.bases
    for component in (*stack.components, *stack.optional):
        CATALOG.component(component)
    for base in stack.bases:
        CATALOG.base(base)
    for target in stack.targets:
        CATALOG.target(target)


@each("stacks")
def test_what_a_stack_says_to_do_next_can_be_filled_in(name: str) -> None:
    for text in CATALOG.stacks[name].next:
        assert "{" not in text.format_map({"dist": "DIST", "out": "OUT", "python": "PYTHON"})


@each("stacks")
def test_every_system_package_of_a_stack_has_a_name_on_each_of_its_bases(name: str) -> None:
    stack = CATALOG.stacks[name]
    for named in stack.bases:
        base, release = CATALOG.base(named)
        for component in map(CATALOG.component, (*stack.components, *stack.optional)):
            system = component.system
            CATALOG.system_packages(base, (*system.build, *system.run, *system.check))
            if "rocm" in base.provided(release):
                CATALOG.system_packages(base, system.rocm)


def test_every_system_package_is_named_for_managers_that_are_there() -> None:
    for name, packages in CATALOG.system.packages.items():
        assert packages, name
        assert set(packages) <= set(CATALOG.managers), name
        assert all(packages.values()), name


@each("bases")
def test_a_base_names_packages_that_the_catalog_has(name: str) -> None:
    base = CATALOG.bases[name]
    assert CATALOG.manager(base).name == base.manager
    assert set(base.packages) <= set(CATALOG.system.packages)
    assert base.release
    assert len(set(base.names)) == len(base.release)


@each("bases")
def test_an_image_of_a_base_is_named_without_its_digest(name: str) -> None:
    for release in CATALOG.bases[name].release:
        assert "@" not in release.image
        assert release.confidence or not release.digest


@each("managers")
def test_a_package_manager_has_every_command(name: str) -> None:
    manager = CATALOG.managers[name]
    for command in (manager.refresh, manager.download, manager.install, manager.list):
        assert command
    assert "{packages}" in manager.download
    assert "{folder}" in " ".join(manager.download)
    assert "{folder}" in " ".join(manager.install)


@each("bases")
def test_a_base_provides_only_what_the_catalog_has_a_recipe_for(name: str) -> None:
    base = CATALOG.bases[name]
    for release in base.release:
        assert set(base.provided(release)) <= set(CATALOG.components)


# components


@each("components")
def test_the_environment_of_a_component_can_be_filled_in(name: str) -> None:
    component = CATALOG.components[name]
    for release in component.release:
        for have in (frozenset({"rocm"}), frozenset[str]()):
            for key, value in chosen_values(component.env | release.env, have).items():
                assert "{" not in expand(value, {"version": release.version, "targets": "gfx1151"}, key)


@each("components")
def test_every_expression_of_a_component_can_be_compiled(name: str) -> None:
    for edit in CATALOG.components[name].edit:
        re.compile(edit.regex, re.MULTILINE)
        SpecifierSet(edit.versions)
        assert edit.expect > 0
        assert edit.why


@each("components")
def test_the_needs_of_a_component_are_ranges_of_something_that_can_be_had(name: str) -> None:
    for release in CATALOG.components[name].release:
        assert release.source
        assert set(release.needs) <= {"python", *CATALOG.components}
        for specifier in release.needs.values():
            SpecifierSet(specifier)


@each("components")
def test_every_release_can_be_had_somewhere(name: str) -> None:
    component = CATALOG.components[name]
    assert len({release.version for release in component.release}) == len(component.release) > 0
    for release in component.release:
        assert bool(release.places) == (component.kind != "tool")  # tools come from the package index
        for place in release.places:
            if isinstance(place, BuiltinPlace):
                assert any((DATA / "sources" / place.builtin).iterdir())
            if isinstance(place, DebianPlace):
                assert all(name.endswith((".patch", ".diff")) or name for name in place.series)


@each("components")
def test_the_outputs_of_a_component_have_names_of_their_own(name: str) -> None:
    component = CATALOG.components[name]
    outputs = component.output
    assert bool(outputs) == (component.kind not in ("image", "file", "wheels", "tool"))
    assert bool(outputs) == bool(component.run)
    assert len({one.name for one in outputs}) == len(outputs)


@each("components")
def test_a_component_with_an_image_has_an_archive_to_put_into_it(name: str) -> None:
    component = CATALOG.components[name]
    if component.image is not None:
        assert "archive" in {one.name for one in component.output}
        assert component.image.prefix.startswith("/")


@each("components")
def test_every_script_that_checks_a_component_is_there(name: str) -> None:
    for check in CATALOG.components[name].check:
        if check.kind == "script":
            assert (DATA / check.script).is_file(), check.script


def test_every_folder_of_check_scripts_is_used_by_a_component() -> None:
    components = CATALOG.components.values()
    checks = [check for one in components for check in (*one.check, *one.emulated)]
    used = {(DATA / check.script).parent for check in checks if check.kind == "script"}
    for path in (DATA / "checks").rglob("*.py"):
        assert used & set(path.parents), path


@each("components")
def test_a_component_is_checked(name: str) -> None:
    """Where it holds machine code; the rest is Python code, an image, or a library of the CPU."""
    component: Component = CATALOG.components[name]
    assert component.check or not component.targets_code
    assert len({check.name for check in component.check}) == len(component.check)


def test_no_distribution_name_or_gpu_is_written_into_the_code() -> None:
    """Facts live in data: a new GPU is a few lines of TOML."""
    code = Path(DATA).parents[1]
    for path in code.rglob("*.py"):
        if DATA in path.parents or path.name == "detect.py":
            continue
        named = [
            line
            for line in path.read_text().splitlines()
            if re.search(r"^[^#]*\bif\b.*\bgfx[0-9a-f]{3,4}\b", line)
        ]
        assert named == [], path
