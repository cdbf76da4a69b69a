"""Memory, swap, the limits of cgroups, and pressure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Literal

from rocwright.diagnosis.machine.model import Memory
from rocwright.diagnosis.machine.tree import Tree, is_number

_NAMES = {"cgroup": "memory.limit_in_bytes", "cgroup2": "memory.max"}


def read_memory(tree: Tree) -> Memory | None:
    """None where the kernel does not tell."""
    table = tree.table("/proc/meminfo")
    if "MemTotal" not in table:
        return None
    limits = [bound for bound in _limits(tree) if bound[0] < table["MemTotal"]]
    limit, source = min(limits, default=(None, ""))
    return Memory(
        total=table["MemTotal"],
        available=table.get("MemAvailable", table.get("MemFree", 0)),
        swap=table.get("SwapTotal", 0),
        swap_free=table.get("SwapFree", 0),
        limit=limit,
        limited_by=source,
        cgroups=_kind(tree),
        pressure=_pressure(tree),
        delegated=_delegated(tree) if tree.live else None,
    )


def _mounts(tree: Tree) -> Iterator[tuple[str, str, str, str]]:
    """Kind, mount point, root and options of each cgroup hierarchy (proc(5), mountinfo)."""
    for line in (tree.text("/proc/self/mountinfo") or "").splitlines():
        head, _, tail = line.partition(" - ")
        fields, kinds = head.split(), tail.split()
        if len(fields) > 4 and len(kinds) > 2 and kinds[0] in _NAMES:
            yield kinds[0], fields[4], fields[3], kinds[2]


def _kind(tree: Tree) -> Literal["none", "v1", "v2", "hybrid"]:
    kinds = {kind for kind, *_ in _mounts(tree)}
    if len(kinds) == 2:
        return "hybrid"
    return "none" if not kinds else "v2" if kinds == {"cgroup2"} else "v1"


def _limits(tree: Tree) -> Iterator[tuple[int, str]]:
    """Each limit from this process's cgroup upwards."""
    for kind, point, group in _own(tree):
        for folder in (group, *group.parents):
            file = f"{point}{str(folder).rstrip('/')}/{_NAMES[kind]}"
            text = tree.text(file) or ""
            if is_number(text):
                yield int(text), file


def _own(tree: Tree) -> Iterator[tuple[str, str, PurePosixPath]]:
    """Kind and mount point of each hierarchy that counts memory, and this process's cgroup in it."""
    own: dict[str, str] = {}
    for line in (tree.text("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        own |= dict.fromkeys(controllers.split(","), path)
    for kind, point, root, options in _mounts(tree):
        if kind == "cgroup" and "memory" not in options.split(","):
            continue
        path = own.get("memory" if kind == "cgroup" else "", "/")
        yield (
            kind,
            point,
            PurePosixPath("/", path.removeprefix(root).lstrip("/") if root != "/" else path.lstrip("/")),
        )


def _delegated(tree: Tree) -> bool | None:
    """Whether a cgroup may be made below this process's own, or next to it."""
    folders = [(point, folder) for _, point, group in _own(tree) for folder in (group, group.parent)]
    files = [f"{point}{str(folder).rstrip('/')}/cgroup.procs" for point, folder in folders]
    return any(map(tree.may_use, files)) if files else None


def _pressure(tree: Tree) -> float | None:
    """None where the kernel has no PSI."""
    match = re.search(
        r"^some avg10=([0-9]+(?:\.[0-9]+)?)", tree.text("/proc/pressure/memory") or "", re.MULTILINE
    )
    return float(match[1]) if match else None
