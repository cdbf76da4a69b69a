"""Machines as small trees of files, made from what their kernels show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rocwheel_samples.trees import write_tree

GIB = 1024**3
USER = 1000


@dataclass(frozen=True, kw_only=True)
class Card:
    """A display device on the PCI bus; one with a `version` is in the compute driver's topology too."""

    address: str
    device: int
    vendor: int = 0x1002
    driver: str = "amdgpu"
    version: int = 0
    simds: int = 0
    minor: int | None = None
    vram: int = 0
    gtt: int = 0
    firmware: Mapping[str, str] | None = None
    unique_id: int = 0
    config: bytes = b""

    @property
    def location(self) -> int:
        bus, slot, function = (int(one, 16) for one in self.address[5:].replace(".", ":").split(":"))
        return bus << 8 | slot << 3 | function


POLARIS = Card(
    address="0000:01:00.0", device=0x67DF, version=80003, simds=144, minor=0, vram=8 * GIB, gtt=16 * GIB
)
PHOENIX = Card(
    address="0000:c4:00.0", device=0x15BF, version=110003, simds=24, minor=0, vram=GIB // 2, gtt=14 * GIB
)
STRIX_HALO = Card(
    address="0000:c5:00.0",
    device=0x1586,
    version=110501,
    simds=80,
    minor=1,
    vram=GIB // 2,
    gtt=62 * GIB,
    firmware={"mes_fw_version": "0x00000083"},
    unique_id=0x1234567890ABCDEF,
)
NAVI31 = Card(
    address="0000:03:00.0", device=0x744C, version=110000, simds=192, minor=1, vram=24 * GIB, gtt=30 * GIB
)
NAVI31_TOO = Card(address="0000:83:00.0", device=0x744C, version=110000, simds=192, minor=2, vram=24 * GIB)
NVIDIA = Card(address="0000:41:00.0", device=0x2684, vendor=0x10DE, driver="nvidia")


def machine(
    root: Path,
    *cards: Card,
    kernel: str = "6.12.25",
    memory: int = 32 * GIB,
    groups: str = "1000",
    more: Mapping[str, str] | None = None,
    kfd: bool = True,
) -> Path:
    """A tree of a machine with these cards, as a user in these groups sees it."""
    files = {
        "proc/sys/kernel/osrelease": f"{kernel}\n",
        "proc/meminfo": f"MemTotal: {memory // 1024} kB\nMemAvailable: {memory // 2048} kB\n",
        "proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        "proc/self/status": f"Name:\tcat\nUid:\t{USER}\t{USER}\nGid:\t1000\t1000\nGroups:\t{groups}\n",
        "etc/passwd": "root:x:0:0::/root:/bin/sh\ngrace:x:1000:1000::/home/grace:/bin/sh\n",
        "etc/group": "root:x:0:\nvideo:x:44:\nrender:x:992:\ngrace:x:1000:\n",
        "sys/devices/system/cpu/online": "0-15\n",
        "sys/module/amdgpu/parameters/gttsize": "-1\n",
        "sys/module/ttm/parameters/pages_limit": f"{memory // 2 // 4096}\n",
        "sys/module/ttm/parameters/page_pool_size": f"{memory // 2 // 4096}\n",
    }
    if kfd:
        files["sys/class/kfd/kfd/topology/nodes/0/properties"] = "cpu_cores_count 16\nsimd_count 0\n"
        files["dev/kfd"] = ""
    for number, card in enumerate(cards, 1):
        files |= _pci(card)
        if card.version and kfd:
            files[f"sys/class/kfd/kfd/topology/nodes/{number}/properties"] = _node(card)
    write_tree(root, files | dict(more or {}))
    for card in cards:
        _links(root, card)
    return root


def _node(card: Card) -> str:
    return (
        f"cpu_cores_count 0\nsimd_count {card.simds}\ngfx_target_version {card.version}\nvendor_id 4098\n"
        f"device_id {card.device}\nlocation_id {card.location}\ndomain 0\n"
        f"drm_render_minor {128 + (card.minor or 0)}\nunique_id {card.unique_id}\n"
    )


def _pci(card: Card) -> dict[str, str]:
    folder = f"sys/bus/pci/devices/{card.address}"
    files = {
        f"{folder}/class": "0x030000\n",
        f"{folder}/vendor": f"{card.vendor:#06x}\n",
        f"{folder}/device": f"{card.device:#06x}\n",
        f"{folder}/uevent": f"DRIVER={card.driver}\nPCI_SLOT_NAME={card.address}\n",
    }
    if card.vram:
        files[f"{folder}/mem_info_vram_total"] = f"{card.vram}\n"
    if card.gtt:
        files[f"{folder}/mem_info_gtt_total"] = f"{card.gtt}\n"
    if card.minor is not None:
        files[f"{folder}/drm/card{card.minor}/dev"] = "226:0\n"
        files[f"{folder}/drm/renderD{128 + card.minor}/dev"] = "226:128\n"
        files[f"dev/dri/renderD{128 + card.minor}"] = ""
    if card.unique_id:
        files[f"{folder}/unique_id"] = f"{card.unique_id:016x}\n"
    return files | {
        f"{folder}/fw_version/{name}": f"{text}\n" for name, text in (card.firmware or {}).items()
    }


def _links(root: Path, card: Card) -> None:
    folder = root / "sys/bus/pci/devices" / card.address
    if card.driver:
        (root / "sys/bus/pci/drivers" / card.driver).mkdir(parents=True, exist_ok=True)
        (folder / "driver").symlink_to(f"../../drivers/{card.driver}")
    if card.config:
        (folder / "config").write_bytes(card.config)
    if card.minor is not None:
        drm = root / f"sys/class/drm/card{card.minor}"
        drm.mkdir(parents=True)
        (drm / "device").symlink_to(f"../../../bus/pci/devices/{card.address}")
