"""What is said of whole machines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rocwright.catalog.load import builtin_catalog
from rocwright.home import Home
from rocwright.trouble.doctor import Report, examine, here
from rocwright.trouble.facts import host_facts
from rocwright.trouble.findings.model import Finding
from rocwright.trouble.machine.tree import Tree
from tests.trouble.machines import NAVI31, NVIDIA, PHOENIX, POLARIS, machine

CATALOG, FACTS = builtin_catalog(), host_facts()
EVERY = tuple(CATALOG.stacks)


def report(root: Path, *stacks: str) -> Report:
    with Tree(root) as tree:
        found = here(tree, CATALOG, FACTS, Home(root / "home"))
    return examine(found, CATALOG, FACTS, stacks or EVERY)


def named(root: Path, name: str, *stacks: str) -> list[Finding]:
    return [one for one in report(root, *stacks).findings if one.name == name and one.grade != "ok"]


def closed(root: Path) -> Path:
    (root / "dev/kfd").chmod(0o660)
    return root


def test_a_machine_without_amd_is_told_what_it_has(tmp_path: Path) -> None:
    [one] = named(machine(tmp_path, NVIDIA, kfd=False), "no-gpu")
    assert (one.grade, one.what) == ("note", "no AMD GPU; others: 10de:2684 (nvidia)")


def test_a_card_that_no_driver_took_is_an_error(tmp_path: Path) -> None:
    root = machine(tmp_path, replace(POLARIS, driver="", minor=None), kfd=False)
    [one] = named(root, "not-driven")
    assert one.grade == "error"
    assert one.mend == "sudo modprobe amdgpu"


def test_a_card_that_the_compute_driver_refused_is_an_error_but_not_for_vulkan(tmp_path: Path) -> None:
    [one] = named(machine(tmp_path, replace(POLARIS, version=0)), "not-in-topology")
    assert one.grade == "error"
    assert "llama-vulkan" not in one.stacks
    assert "llama-hip" in one.stacks


def test_no_compute_device_at_all_is_told(tmp_path: Path) -> None:
    assert [one.what for one in named(machine(tmp_path, POLARIS, kfd=False), "no-kfd")] == [
        "there is no /dev/kfd"
    ]


def test_half_a_topology_names_the_node(tmp_path: Path) -> None:
    root = machine(tmp_path, PHOENIX, NAVI31)
    (root / "sys/class/kfd/kfd/topology/nodes/2/properties").unlink()
    [one] = named(root, "half-topology")
    assert one.what == "3 nodes in the topology; without what they are: 2"


def test_an_apu_beside_a_card_is_pointed_out(tmp_path: Path) -> None:
    assert named(machine(tmp_path, PHOENIX, NAVI31), "several-gpus")


def test_the_worst_is_said_first(tmp_path: Path) -> None:
    grades = [one.grade for one in report(machine(tmp_path, replace(POLARIS, version=0))).findings]
    assert grades == sorted(grades, key=("error", "warning", "note", "ok").index)


def test_an_empty_tree_is_no_crash(tmp_path: Path) -> None:
    assert [one.name for one in report(tmp_path).findings] == ["no-memory-told", "no-gpu"]
