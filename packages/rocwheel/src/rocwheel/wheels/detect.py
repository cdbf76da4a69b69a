"""Which AMD GPUs are in this machine, read from the kernel; no ROCm needs to be installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rocwheel.wheels.emulators import emulator_of

AMD = "0x1002"
SYSFS = Path("/sys")


@dataclass(frozen=True, slots=True)
class DetectedGpu:
    """A GPU in this machine: its target (None where it is not known), PCI id, where that was read."""

    target: str | None
    pci_id: str
    source: str


def target_of_version(version: int) -> str:
    """The name of a gfx_target_version: 110501 -> gfx1151, 90010 -> gfx90a.

    Source: the kernel's KFD topology (major * 10000 + minor * 100 + stepping, the last two in hexadecimal).
    """
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def find_gpus(by_pci: Mapping[str, str], sysfs: Path = SYSFS) -> list[DetectedGpu]:
    """GPUs from the KFD topology, else from PCI ids of the DRM devices; the strongest first.

    `by_pci` are targets by PCI id, such as 1002:15bf. In a process that runs in an emulator there are none:
    what it sees of this machine is the emulator's.
    """
    if sysfs == SYSFS and emulator_of():
        return []
    return _from_topology(sysfs) or _from_pci(by_pci, sysfs)


def _from_topology(sysfs: Path) -> list[DetectedGpu]:
    gpus: list[tuple[int, DetectedGpu]] = []
    for path in sorted((sysfs / "class/kfd/kfd/topology/nodes").glob("*/properties")):
        try:
            words = dict(line.split(maxsplit=1) for line in path.read_text().splitlines() if " " in line)
            version, simds = int(words.get("gfx_target_version", 0)), int(words.get("simd_count", 0))
        except (OSError, ValueError):
            continue
        if version and simds:
            pci_id = f"1002:{int(words.get('device_id', 0)):04x}"
            gpus.append((simds, DetectedGpu(target_of_version(version), pci_id, "KFD topology")))
    return [gpu for _, gpu in sorted(gpus, key=lambda pair: -pair[0])]


def _from_pci(by_pci: Mapping[str, str], sysfs: Path) -> list[DetectedGpu]:
    gpus = []
    for device in sorted((sysfs / "class/drm").glob("card[0-9]*/device")):
        try:
            vendor, number = (device / "vendor").read_text().strip(), int((device / "device").read_text(), 16)
        except (OSError, ValueError):
            continue
        if vendor == AMD:
            pci_id = f"1002:{number:04x}"
            gpus.append(DetectedGpu(by_pci.get(pci_id), pci_id, "PCI id"))
    return list(dict.fromkeys(gpus))
