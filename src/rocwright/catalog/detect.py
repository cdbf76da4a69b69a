"""Which AMD GPUs are in this machine, with the targets of the catalog."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.wheels import detect
from rocwheel.wheels.detect import SYSFS, DetectedGpu

if TYPE_CHECKING:
    from rocwright.catalog.load import Catalog


def find_gpus(catalog: Catalog, sysfs: Path = SYSFS) -> list[DetectedGpu]:
    """GPUs from the KFD topology, else from PCI ids of the DRM devices; the strongest first."""
    by_pci = {pci: target.name for target in catalog.targets.values() for pci in target.pci_ids}
    return detect.find_gpus(by_pci, sysfs)
