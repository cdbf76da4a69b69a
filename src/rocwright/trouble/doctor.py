"""Is this machine fit for a stack? What is known of it, what is not right, and what it can do."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from rocwright.catalog.load import Catalog
from rocwright.home import Home
from rocwright.models import Frozen
from rocwright.trouble.facts import Grade, HostFacts
from rocwright.trouble.findings.devices import devices
from rocwright.trouble.findings.model import ORDER, Finding
from rocwright.trouble.findings.room import room
from rocwright.trouble.machine.model import Machine
from rocwright.trouble.machine.read import read_machine
from rocwright.trouble.machine.tree import Tree
from rocwright.trouble.needs import need_of


class Report(Frozen):
    """What was read, and what was found in it, the worst first."""

    machine: Machine
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Grade:
        return self.findings[0].grade if self.findings else "ok"


def here(
    tree: Tree, catalog: Catalog, facts: HostFacts, home: Home, engines: dict[str, str] | None = None
) -> Machine:
    """The machine of a tree, with the places that rocwright writes to on this one."""
    folder = str(Path.home())
    places = {"the store": str(home.store), "temporary files": tempfile.gettempdir()}
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
    )


def examine(machine: Machine, catalog: Catalog, facts: HostFacts, stacks: Sequence[str]) -> Report:
    """What is not right with a machine, for these stacks."""
    names = tuple(stacks)
    needs = tuple(need_of(catalog, name) for name in names)
    findings = [
        *devices(machine, facts, names),
        *room(machine, facts, needs),
    ]
    findings.sort(key=lambda one: ORDER.index(one.grade))
    return Report(machine=machine, findings=tuple(findings))
