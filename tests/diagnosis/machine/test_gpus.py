"""Which GPUs a machine has, from whatever its kernel shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.diagnosis.machine.machines import (
    NAVI31,
    NAVI31_TOO,
    NVIDIA,
    PHOENIX,
    POLARIS,
    STRIX_HALO,
    Card,
    machine,
)

from rocwheel_samples.trees import write_tree
from rocwright.catalog.load import builtin_catalog
from rocwright.diagnosis.facts import host_facts
from rocwright.diagnosis.machine.gpus import read_gpus
from rocwright.diagnosis.machine.model import Gpu, Graphics, Topology
from rocwright.diagnosis.machine.read import read_machine
from rocwright.diagnosis.machine.tree import Tree
from rocwright.doctor.findings.devices import devices

CATALOG, FACTS = builtin_catalog(), host_facts()


def read(root: Path) -> tuple[tuple[Gpu, ...], tuple[Graphics, ...], Topology]:
    with Tree(root) as tree:
        return read_gpus(tree, CATALOG, FACTS)


def targets(root: Path) -> list[str | None]:
    return [gpu.target for gpu in read(root)[0]]


def test_a_polaris_card_is_told_by_all_three(tmp_path: Path) -> None:
    [gpu], _, topology = read(machine(tmp_path, POLARIS))
    assert (gpu.target, gpu.pci_id, gpu.address) == ("gfx803", "1002:67df", "0000:01:00.0")
    assert gpu.told_by == ("kfd", "drm", "pci")
    assert (gpu.driver, gpu.render, gpu.shared) == ("amdgpu", "renderD128", False)
    assert (gpu.vram, gpu.gtt) == (POLARIS.vram, POLARIS.gtt)
    assert (topology.nodes, topology.partial) == (2, ())


def test_a_phoenix_apu_computes_in_the_machines_memory(tmp_path: Path) -> None:
    [gpu], _, _ = read(machine(tmp_path, PHOENIX))
    assert (gpu.target, gpu.shared) == ("gfx1103", True)


def test_firmware_of_a_strix_halo_is_read_from_the_drivers_files(tmp_path: Path) -> None:
    [gpu], _, _ = read(machine(tmp_path, STRIX_HALO))
    assert (gpu.target, gpu.firmware) == ("gfx1151", {"mes": 0x83})


def test_firmware_is_read_from_debugfs_where_the_driver_has_no_files(tmp_path: Path) -> None:
    at = {"VCE": 0, "MES": 0x80}
    text = "\n".join(f"{name} feature version: 1, firmware version: {of:#010x}" for name, of in at.items())
    more = {"sys/kernel/debug/dri/1/amdgpu_firmware_info": text}
    [gpu], _, _ = read(machine(tmp_path, replace(STRIX_HALO, firmware=None), more=more))
    assert gpu.firmware == {"mes": 0x80}


def test_an_apu_beside_a_card_is_found_and_the_card_comes_first(tmp_path: Path) -> None:
    gpus, _, _ = read(machine(tmp_path, PHOENIX, NAVI31))
    assert [gpu.target for gpu in gpus] == ["gfx1100", "gfx1103"]


def test_two_cards_of_one_kind_are_two(tmp_path: Path) -> None:
    gpus, _, _ = read(machine(tmp_path, NAVI31, NAVI31_TOO))
    assert [gpu.address for gpu in gpus] == [NAVI31.address, NAVI31_TOO.address]


def test_a_card_without_any_driver_is_found_on_the_bus(tmp_path: Path) -> None:
    [gpu], _, topology = read(machine(tmp_path, replace(POLARIS, driver="", minor=None), kfd=False))
    assert (gpu.target, gpu.told_by, gpu.driver) == ("gfx803", ("pci",), "")
    assert not topology.there


def test_a_machine_without_amd_names_what_it_has(tmp_path: Path) -> None:
    gpus, others, _ = read(machine(tmp_path, NVIDIA, kfd=False))
    assert gpus == ()
    assert others == (Graphics(pci_id="10de:2684", driver="nvidia"),)


def test_an_amd_gpu_that_the_catalog_does_not_know_has_no_target(tmp_path: Path) -> None:
    assert targets(machine(tmp_path, Card(address="0000:05:00.0", device=0xFFFF))) == [None]


def test_a_topology_without_a_bus_still_tells_its_gpus(tmp_path: Path) -> None:
    text = "simd_count 80\ngfx_target_version 110501\ndevice_id 5510\nlocation_id 50432\ndomain 0\n"
    [gpu], _, _ = read(write_tree(tmp_path, {"sys/class/kfd/kfd/topology/nodes/1/properties": text}))
    assert (gpu.target, gpu.pci_id, gpu.told_by) == ("gfx1151", "1002:1586", ("kfd",))


def test_half_a_topology_is_told_and_the_bus_says_the_rest(tmp_path: Path) -> None:
    root = machine(tmp_path, PHOENIX, NAVI31)
    (root / "sys/class/kfd/kfd/topology/nodes/2/properties").unlink()
    gpus, _, topology = read(root)
    assert topology.partial == (2,)
    assert {gpu.target: gpu.node for gpu in gpus} == {"gfx1103": 1, "gfx1100": None}


def test_nothing_at_all_is_no_gpu_and_no_topology(tmp_path: Path) -> None:
    assert read(tmp_path) == ((), (), Topology(there=False))


def test_a_process_in_an_emulator_has_no_gpu_whatever_its_kernel_shows(tmp_path: Path) -> None:
    root = machine(tmp_path, PHOENIX)
    with Tree(root) as tree:
        seen = read_machine(tree, CATALOG, FACTS, home="/root", places={})
        assert ([one.target for one in seen.gpus], seen.emulator) == (["gfx1103"], "")
    library = "/usr/lib/librocjitsu.so"
    write_tree(root, {"proc/self/maps": f"7f0000-7f1000 r--p 0 fe:00 1   {library}\n"})
    with Tree(root) as tree:
        seen = read_machine(tree, CATALOG, FACTS, home="/root", places={})
    assert (seen.gpus, seen.emulator) == ((), library)
    (told,) = [one for one in devices(seen, FACTS, ()) if one.name == "no-gpu"]
    assert f"({library}), whose GPUs do not count" in told.what
