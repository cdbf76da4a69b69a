"""Which GPUs are in a machine, of what the compute driver, DRM and the PCI bus each tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rocwheel.wheels.detect import AMD, target_of_version
from rocwright.catalog.load import Catalog
from rocwright.diagnosis.facts import HostFacts
from rocwright.diagnosis.machine.model import Atomics, Gpu, Graphics, Topology
from rocwright.diagnosis.machine.tree import Tree, is_number

NODES = "/sys/class/kfd/kfd/topology/nodes"
DRM = "/sys/class/drm"
PCI = "/sys/bus/pci/devices"
# The PCI class of display controllers (PCI Code and ID Assignment, base class 03h).
DISPLAY = "0x03"

_FIRMWARE = "_fw_version"
_LINE = re.compile(r"^(\S.*?) feature version: \d+, firmware version: (0x[0-9a-f]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Node:
    """A GPU of the compute driver's topology."""

    number: int
    version: int
    simds: int
    device: int
    address: str


def topology(tree: Tree) -> tuple[Topology, tuple[Node, ...]]:
    """The nodes that are GPUs; those without readable properties are partial."""
    nodes: list[Node] = []
    partial: list[int] = []
    numbers = sorted(int(name) for name in tree.names(NODES) if is_number(name))
    for number in numbers:
        words = tree.table(f"{NODES}/{number}/properties")
        if "simd_count" not in words and "cpu_cores_count" not in words:
            partial.append(number)
        elif words.get("simd_count"):
            if not words.get("gfx_target_version"):
                partial.append(number)
            address = _address(words.get("domain", 0), words.get("location_id", 0))
            nodes.append(
                Node(
                    number,
                    words.get("gfx_target_version", 0),
                    words["simd_count"],
                    words.get("device_id", 0),
                    address,
                )
            )
    present = bool(numbers) or "kfd" in tree.names("/sys/class/kfd")
    return Topology(there=present, nodes=len(numbers), partial=tuple(partial)), tuple(nodes)


def _address(domain: int, location: int) -> str:
    """A PCI address of the topology's numbers: bus in the upper byte, device and function in the lower."""
    return f"{domain:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7:x}"


def read_gpus(
    tree: Tree, catalog: Catalog, facts: HostFacts
) -> tuple[tuple[Gpu, ...], tuple[Graphics, ...], Topology]:
    """AMD GPUs, the strongest first; display devices of others; the topology."""
    layout, nodes = topology(tree)
    by_address = {node.address: node for node in nodes}
    drm = dict(_drm(tree))
    gpus, graphics = [], []
    for address in sorted({*_displays(tree), *drm}):
        pci_id = _pci_id(tree, address, drm.get(address, ""))
        if pci_id is None:
            continue
        driver = tree.link(f"{PCI}/{address}/driver") or ""
        if not pci_id.startswith(AMD.removeprefix("0x")):
            graphics.append(Graphics(pci_id=pci_id, driver=driver))
            continue
        node = by_address.pop(address, None)
        gpus.append(_gpu(tree, catalog, facts, pci_id, address, driver, drm.get(address, ""), node))
    for node in by_address.values():
        pci_id = f"{AMD.removeprefix('0x')}:{node.device:04x}"
        gpus.append(_gpu(tree, catalog, facts, pci_id, node.address, "", "", node))
    gpus.sort(key=lambda gpu: (-gpu.simds, gpu.shared, gpu.address))
    return tuple(gpus), tuple(graphics), layout


def _displays(tree: Tree) -> Iterator[str]:
    for address in tree.names(PCI):
        if (tree.text(f"{PCI}/{address}/class") or "").startswith(DISPLAY):
            yield address


def _drm(tree: Tree) -> Iterator[tuple[str, str]]:
    """PCI address and folder of each card."""
    for name in tree.names(DRM):
        if re.fullmatch(r"card\d+", name):
            folder = f"{DRM}/{name}/device"
            match = re.search(r"^PCI_SLOT_NAME=(\S+)", tree.text(f"{folder}/uevent") or "", re.MULTILINE)
            yield (match[1] if match else name), folder


def _pci_id(tree: Tree, address: str, card: str) -> str | None:
    for folder in filter(None, (f"{PCI}/{address}", card)):
        vendor, device = tree.number(f"{folder}/vendor"), tree.number(f"{folder}/device")
        if vendor is not None and device is not None:
            return f"{vendor:04x}:{device:04x}"
    return None


def _gpu(
    tree: Tree,
    catalog: Catalog,
    facts: HostFacts,
    pci_id: str,
    address: str,
    driver: str,
    card: str,
    node: Node | None,
) -> Gpu:
    folder = card or f"{PCI}/{address}"
    by_id = next((entry.name for entry in catalog.targets.values() if pci_id in entry.pci_ids), None)
    target = target_of_version(node.version) if node and node.version else by_id
    catalogued = catalog.targets.get(target or "")
    pci = bool(tree.text(f"{PCI}/{address}/class"))
    places = (("kfd", node is not None), ("drm", bool(card)), ("pci", pci))
    return Gpu(
        target=target,
        pci_id=pci_id,
        address=address if ":" in address else "",
        told_by=tuple(name for name, present in places if present),
        node=node.number if node else None,
        simds=node.simds if node else 0,
        driver=driver or (tree.link(f"{card}/driver") or "" if card else ""),
        render=next((name for name in tree.names(f"{folder}/drm") if name.startswith("renderD")), ""),
        shared=bool(catalogued and set(catalogued.families) & set(facts.shares_memory.families)),
        vram=tree.number(f"{folder}/mem_info_vram_total"),
        gtt=tree.number(f"{folder}/mem_info_gtt_total"),
        firmware=_firmware(tree, folder, address),
        atomics=atomics(tree, f"{PCI}/{address}", f"{NODES}/{node.number}" if node else ""),
    )


def _firmware(tree: Tree, folder: str, address: str) -> dict[str, int]:
    """Versions by block, in small letters, from the driver's files, else from debugfs (for root alone)."""
    versions = {
        name.removesuffix(_FIRMWARE): version
        for name in tree.names(f"{folder}/fw_version")
        if (version := tree.number(f"{folder}/fw_version/{name}"))
    }
    debug = "/sys/kernel/debug/dri"
    for name in (address, *(card.removeprefix("card") for card in tree.names(f"{folder}/drm"))):
        text = tree.text(f"{debug}/{name}/amdgpu_firmware_info") if not versions and name else None
        lines = _LINE.findall(text or "")
        versions |= {block.lower().replace(" ", "_"): int(version, 16) for block, version in lines}
    return {name: version for name, version in versions.items() if version}


_CAPABILITIES, _EXPRESS = 0x34, 0x10
# Device Control 2 of the capability, AtomicOp Requester Enable (PCI Express Base 3.0, 7.8.16).
_CONTROL_2, _REQUESTER = 0x28, 1 << 6

# Flags of a link without atomics (CRAT_IOLINK_FLAGS_NO_ATOMICS_*, Linux amdkfd/kfd_crat.h).
_NONE_32, _NONE_64 = 1 << 2, 1 << 3


def atomics(tree: Tree, device: str, node: str) -> Atomics:
    """Of the compute driver's links, where there is a node; else of the device's PCI configuration space.

    A user that is not root is shown 64 bytes of the latter, which tell nothing: unknown.
    """
    flags = [
        tree.table(f"{node}/io_links/{name}/properties").get("flags")
        for name in (tree.names(f"{node}/io_links") if node else ())
    ]
    present = [flag for flag in flags if flag is not None]
    if present:
        return "no" if any(flag & (_NONE_32 | _NONE_64) for flag in present) else "yes"
    return requester(tree.raw(f"{device}/config") or b"")


def requester(space: bytes) -> Atomics:
    """Whether AtomicOp requests are enabled in a configuration space."""
    offset, visited = space[_CAPABILITIES] & 0xFC if len(space) > _CAPABILITIES else 0, set[int]()
    while offset and offset not in visited and offset + 2 <= len(space):
        visited.add(offset)
        if space[offset] == _EXPRESS:
            control = space[offset + _CONTROL_2 : offset + _CONTROL_2 + 2]
            if len(control) < 2:
                return "unknown"
            return "yes" if int.from_bytes(control, "little") & _REQUESTER else "no"
        offset = space[offset + 1] & 0xFC
    return "unknown"
