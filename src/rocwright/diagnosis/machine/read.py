"""A whole machine, read."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from rocwheel.wheels.emulators import emulator_in
from rocwright.catalog.load import Catalog
from rocwright.diagnosis.facts import HostFacts
from rocwright.diagnosis.machine.driver import (
    read_driver,
    read_iommu,
    read_page_limit,
    read_processors,
    read_settings,
)
from rocwright.diagnosis.machine.gpus import read_gpus
from rocwright.diagnosis.machine.kernel import read_dkms, read_kernel_log, read_secure_boot
from rocwright.diagnosis.machine.memory import read_memory
from rocwright.diagnosis.machine.model import Container, Machine
from rocwright.diagnosis.machine.rights import has_sub_ids, read_rights, read_user
from rocwright.diagnosis.machine.rooms import read_rooms
from rocwright.diagnosis.machine.tree import Tree


def read_machine(
    tree: Tree,
    catalog: Catalog,
    facts: HostFacts,
    *,
    home: str,
    places: Mapping[str, str],
    work: str = "",
    engines: dict[str, str] | None = None,
    tools: Mapping[str, str] | None = None,
) -> Machine:
    """Everything of a tree; `home` is the user's folder in it, `places` are where builds write.

    `work` is where builds may have left something, `engines` says of each sandbox why it does not work
    (nothing where it does), `tools` their versions. Raises nothing for what cannot be read.
    """
    emulator = emulator_in(tree.text("/proc/self/maps") or "")
    gpus, graphics, topology = read_gpus(tree, catalog, facts)
    user = read_user(tree)
    return Machine(
        gpus=() if emulator else gpus,
        emulator=emulator,
        others=graphics,
        topology=topology,
        user=user,
        rights=read_rights(tree, user),
        driver=read_driver(tree, facts),
        page_limit=read_page_limit(tree, facts),
        kernel_log=read_kernel_log(tree, facts),
        dkms=read_dkms(tree, facts),
        secure_boot=read_secure_boot(tree, facts),
        container=read_container(tree, facts),
        nobodys_group=read_nobodys_group(tree),
        memory=read_memory(tree),
        rooms=read_rooms(tree, facts, user, home, places),
        processors=read_processors(tree),
        sub_ids=has_sub_ids(tree, user),
        settings=read_settings(tree, facts),
        iommu=read_iommu(tree),
        engines=engines,
        tools=dict(tools or {}),
        variables=read_variables(tree, facts),
        configured=read_configured(tree, facts, home),
        folders=read_folders(tree, facts),
        leftovers=read_leftovers(tree, work) if work else (),
        unread=tuple(tree.unread),
    )


# The group that stands for all that are not mapped, where the kernel does not say (user_namespaces(7)).
NOBODY = 65534


def read_container(tree: Tree, facts: HostFacts) -> Container | None:
    """The first engine whose mark is there; None outside of containers."""
    for mark in facts.container:
        text = tree.text(mark.file)
        if text is not None:
            return Container(engine=mark.engine, rootless=bool(mark.rootless) and mark.rootless in text)
    return None


def read_nobodys_group(tree: Tree) -> int:
    """The number of that group."""
    return tree.number("/proc/sys/kernel/overflowgid") or NOBODY


def read_variables(tree: Tree, facts: HostFacts) -> dict[str, str]:
    """The variables of this process that the catalog watches; of others nothing is kept."""
    pairs = (line.partition("=") for line in (tree.text("/proc/self/environ") or "").split("\0"))
    return {
        name: value
        for name, _, value in pairs
        if value and any(fnmatchcase(name, leak.variable) for leak in facts.leak)
    }


def read_configured(tree: Tree, facts: HostFacts, home: str) -> dict[str, str]:
    """File and key -> value, of what the catalog watches."""
    return {
        f"{file}: {key}": value
        for rule in facts.configured
        for file in (pattern.replace("~", home, 1) for pattern in rule.files)
        for key, value in _pairs(tree.text(file) or "")
        if key.replace("_", "-") in rule.keys
    }


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        match = re.fullmatch(r"\s*([A-Za-z_-]+)\s*[=:]\s*(.+?)\s*", line)
        if match:
            yield match[1], match[2]


def read_folders(tree: Tree, facts: HostFacts) -> tuple[str, ...]:
    """The folders of those watched that are there."""
    return tuple(folder.path for folder in facts.folder if tree.stat(folder.path) is not None)


def read_leftovers(tree: Tree, folder: str, depth: int = 2) -> tuple[str, ...]:
    """Fifos that nobody reads, in a folder and some levels below."""
    fifos: list[str] = []
    for name in tree.names(folder):
        path = f"{folder}/{name}"
        kind = tree.stat(path)
        if kind and kind.kind == stat.S_IFIFO and not tree.held(path):
            fifos.append(path)
        elif kind and kind.kind == stat.S_IFDIR and depth:
            fifos += read_leftovers(tree, path, depth - 1)
    return tuple(fifos)
