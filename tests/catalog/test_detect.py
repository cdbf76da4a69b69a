"""Which AMD GPUs are in a machine, from what its kernel shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocwheel_samples.trees import write_tree
from rocwright.catalog.detect import find_gpus
from rocwright.catalog.load import builtin_catalog

CATALOG = builtin_catalog()


def node(number: int, version: int, simds: int, device: int) -> dict[str, str]:
    """A node of the KFD topology, as the kernel writes it."""
    text = (
        f"cpu_cores_count {0 if version else 16}\nsimd_count {simds}\nmem_banks_count 1\n"
        f"gfx_target_version {version}\nvendor_id {4098 if version else 0}\ndevice_id {device}\nunique_id 0\n"
    )
    return {f"class/kfd/kfd/topology/nodes/{number}/properties": text}


def card(number: int, vendor: str, device: str) -> dict[str, str]:
    """A DRM device."""
    folder = f"class/drm/card{number}/device"
    return {f"{folder}/vendor": f"{vendor}\n", f"{folder}/device": f"{device}\n"}


def targets(sysfs: Path) -> list[tuple[str | None, str]]:
    return [(one.target, one.source) for one in find_gpus(CATALOG, sysfs)]


CPU = node(0, 0, 0, 0)


def test_strix_halo_is_found_by_the_kernels_topology(tmp_path: Path) -> None:
    sysfs = write_tree(tmp_path, CPU | node(1, 110501, 80, 0x1586))
    [found] = find_gpus(CATALOG, sysfs)
    assert (found.target, found.pci_id, found.source) == ("gfx1151", "1002:1586", "KFD topology")


def test_polaris_which_the_compute_driver_may_not_show_is_found_by_its_pci_id(tmp_path: Path) -> None:
    sysfs = write_tree(tmp_path, CPU | card(0, "0x1002", "0x67df"))
    [found] = find_gpus(CATALOG, sysfs)
    assert (found.target, found.pci_id, found.source) == ("gfx803", "1002:67df", "PCI id")


def test_a_card_comes_before_the_graphics_of_the_processor(tmp_path: Path) -> None:
    sysfs = write_tree(tmp_path, CPU | node(1, 110003, 24, 0x15BF) | node(2, 110000, 192, 0x744C))
    assert [target for target, _ in targets(sysfs)] == ["gfx1100", "gfx1103"]


def test_gpus_of_other_makers_are_passed_over(tmp_path: Path) -> None:
    sysfs = write_tree(
        tmp_path, card(0, "0x10de", "0x2684") | card(1, "0x1002", "0x67df") | card(2, "0x8086", "0x1")
    )
    assert targets(sysfs) == [("gfx803", "PCI id")]


def test_an_amd_gpu_that_the_catalog_does_not_know_is_shown_without_a_target(tmp_path: Path) -> None:
    sysfs = write_tree(tmp_path, card(0, "0x1002", "0xffff"))
    assert targets(sysfs) == [(None, "PCI id")]


def test_connectors_of_a_card_are_not_cards(tmp_path: Path) -> None:
    sysfs = write_tree(tmp_path, card(0, "0x1002", "0x67df") | {"class/drm/card0-DP-1/status": "connected\n"})
    assert len(find_gpus(CATALOG, sysfs)) == 1


@pytest.mark.parametrize(
    "files",
    [
        {},
        CPU,
        {"class/kfd/kfd/topology/nodes/1/properties": "gfx_target_version many\n"},
        {"class/kfd/kfd/topology/nodes/1/properties": ""},
        {"class/drm/card0/device/vendor": "0x1002\n"},
    ],
    ids=["nothing", "processor only", "no number", "empty", "half a device"],
)
def test_a_machine_without_a_readable_amd_gpu_has_none(tmp_path: Path, files: dict[str, str]) -> None:
    assert find_gpus(CATALOG, write_tree(tmp_path, files)) == []


def test_a_device_number_that_is_none_is_passed_over(tmp_path: Path) -> None:
    assert find_gpus(CATALOG, write_tree(tmp_path, card(0, "0x1002", "junk"))) == []
