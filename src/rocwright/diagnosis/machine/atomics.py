"""Whether a PCI Express device may do atomic operations in the machine's memory."""

from __future__ import annotations

from rocwright.diagnosis.machine.model import Atomics
from rocwright.diagnosis.machine.tree import Tree

_CAPABILITIES, _EXPRESS = 0x34, 0x10
_CONTROL_2, _REQUESTER = 0x28, 1 << 6
"""Device Control 2 of the capability, AtomicOp Requester Enable (PCI Express Base 3.0, 7.8.16)."""

_NONE_32, _NONE_64 = 1 << 2, 1 << 3
"""Flags of a link without atomics (CRAT_IOLINK_FLAGS_NO_ATOMICS_*, Linux amdkfd/kfd_crat.h)."""


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
