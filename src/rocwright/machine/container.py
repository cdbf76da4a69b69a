"""The container that this runs in, as engines mark theirs."""

from __future__ import annotations

from rocwright.diagnosis.facts import HostFacts
from rocwright.machine.model import Container
from rocwright.machine.tree import Tree

NOBODY = 65534
"""The group that stands for all that are not mapped, where the kernel does not say (user_namespaces(7))."""


def read_container(tree: Tree, facts: HostFacts) -> Container | None:
    """The first engine whose mark is there; None outside of containers."""
    for one in facts.container:
        text = tree.text(one.file)
        if text is not None:
            return Container(engine=one.engine, rootless=bool(one.rootless) and one.rootless in text)
    return None


def read_nobodys_group(tree: Tree) -> int:
    """The number of that group."""
    return tree.number("/proc/sys/kernel/overflowgid") or NOBODY
