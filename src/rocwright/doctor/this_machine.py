"""The machine that is looked at: this one, or one whose files lie in a folder."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path

from rocbase.errors import InputError
from rocwright.catalog.load import Catalog
from rocwright.config import store_folder
from rocwright.diagnosis.facts import HostFacts
from rocwright.diagnosis.machine.model import Machine
from rocwright.diagnosis.machine.read import read_machine
from rocwright.diagnosis.machine.tools import read_tools
from rocwright.diagnosis.machine.tree import Tree
from rocwright.home import Home


def here(
    tree: Tree,
    catalog: Catalog,
    facts: HostFacts,
    home: Home,
    engines: dict[str, str] | None = None,
    *,
    tools: bool = True,
) -> Machine:
    """The machine of a tree, with the places that rocwright writes to on this one.

    The versions of its `tools` take a process each.
    """
    folder = str(Path.home())
    places = {"the store": str(store_folder(home)), "temporary files": tempfile.gettempdir()}
    if not tree.live:
        places, folder = {}, "/root"
    return read_machine(
        tree,
        catalog,
        facts,
        home=folder,
        places=places,
        work=str(home.work) if tree.live else "",
        engines=engines,
        tools=read_tools(facts) if tree.live and tools else {},
    )


def only(machine: Machine, targets: Collection[str]) -> Machine:
    """The machine with the GPUs of these targets alone; with all, where none is named. Raises InputError."""
    if not targets:
        return machine
    gpus = tuple(gpu for gpu in machine.gpus if gpu.target in targets)
    if not gpus:
        present = ", ".join(gpu.target or gpu.pci_id for gpu in machine.gpus)
        raise InputError(
            f"{', '.join(sorted(targets))} is not in this machine",
            cause=f"found: {present}" if present else "no AMD GPU was found",
            next_step="rocwright doctor",
        )
    return machine.model_copy(update={"gpus": gpus})
