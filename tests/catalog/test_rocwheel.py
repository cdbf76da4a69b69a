"""What rocwheel knows of GPUs, and what the catalog knows beyond that, are of the same GPUs."""

from __future__ import annotations

from rocbase.toml.read import Reader
from rocwheel.tables import DATA as WHEEL_DATA
from rocwheel.wheels.audit.facts import isas
from rocwheel.wheels.devicecode.generic import generic_targets
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel.wheels.gpu_table import gpu_table
from rocwheel.wheels.overrides import overrides_in
from rocwheel_samples.tables import each
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import builtin_catalog

CATALOG = builtin_catalog()


def test_the_same_gpus_have_names_overrides_and_facts() -> None:
    assert {one.target for one in gpu_table().gpus} == set(CATALOG.targets)
    assert set(overrides_in((WHEEL_DATA,)).by_target) == set(CATALOG.targets)


def test_every_target_has_a_number_in_elf_files_and_an_instruction_set() -> None:
    assert set(CATALOG.targets) <= set(machines().values())
    assert set(CATALOG.targets) <= set(isas())
    covered = {name for names in generic_targets().values() for name in names}
    assert covered <= set(machines().values())


@each("name", CATALOG.targets)
def test_a_target_is_joined_from_both(name: str) -> None:
    target = CATALOG.targets[name]
    [named] = [one for one in gpu_table().gpus if one.target == name]
    assert (target.products, target.pci_ids) == (named.products, named.pci_ids)
    assert target.override == overrides_in((WHEEL_DATA,)).by_target[name]
    version = target.kfd_version
    assert target.override is not None
    assert target.override.identity == f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def test_the_variable_that_passes_one_card_for_another_is_kept_from_builds() -> None:
    assert overrides_in((WHEEL_DATA,)).variable == CATALOG.override_variable != ""


def test_no_fact_stands_in_both() -> None:
    assert not {one.name for one in DATA.glob("*.toml")} & {one.name for one in WHEEL_DATA.glob("*.toml")}
    reader, path = Reader((DATA,)), DATA / "targets.toml"
    rows = reader.rows(path, reader.data(path), "target")
    twice = {"products", "also", "codenames", "pci_ids", "override"}
    assert [row["name"] for row in rows if twice & row.keys()] == []
