"""The machine that is looked at: this one, or one whose files lie in a folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from rocwheel.errors import InputError
from rocwright.catalog.load import Catalog, the_catalog
from rocwright.config import store_folder
from rocwright.diagnosis.diagnose import Diagnosis
from rocwright.diagnosis.facts import HostFacts, host_facts
from rocwright.diagnosis.here import not_of, of_log, suspects, with_machine
from rocwright.home import Home
from rocwright.machine.driver import read_driver
from rocwright.machine.evidence import evidence
from rocwright.machine.gpus import read_gpus
from rocwright.machine.model import Machine
from rocwright.machine.read import read_machine
from rocwright.machine.tools import read_tools
from rocwright.machine.tree import Tree


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


def with_this_machine(
    found: Diagnosis,
    targets: Sequence[str] = (),
    say: Callable[[str], None] = lambda _: None,
    *,
    elsewhere: bool = False,
) -> Diagnosis:
    """A diagnosis with what speaks for or against causes that are the kernel's or the firmware's.

    It is this machine that is looked at, and only where it matters; of a log that is of another, what that
    says itself. `targets` are those that it is of, where they are known.
    """
    facts = host_facts()
    if not suspects(found, facts):
        return found
    catalog, here = the_catalog(), of_log(found)
    if not elsewhere:
        with Tree() as tree:
            this = evidence(read_gpus(tree, catalog, facts)[0], read_driver(tree, facts))
        why = not_of(found, this)
        if why:
            say(f"this machine says nothing of it: {why}")
        else:
            here = this
    return with_machine(found, here, facts, catalog.targets, targets)


def only(machine: Machine, targets: Collection[str]) -> Machine:
    """The machine with the GPUs of these targets alone; with all, where none is named. Raises InputError."""
    if not targets:
        return machine
    gpus = tuple(gpu for gpu in machine.gpus if gpu.target in targets)
    if not gpus:
        seen = ", ".join(gpu.target or gpu.pci_id for gpu in machine.gpus)
        raise InputError(
            f"{', '.join(sorted(targets))} is not in this machine",
            cause=f"found: {seen}" if seen else "no AMD GPU was found",
            next_step="rocwright doctor",
        )
    return machine.model_copy(update={"gpus": gpus})
