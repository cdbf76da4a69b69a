"""What leaks into builds and programs: variables, configuration, folders, what killed builds left."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase

from rocwright.diagnosis.facts import HostFacts
from rocwright.diagnosis.machine.tree import Tree


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
