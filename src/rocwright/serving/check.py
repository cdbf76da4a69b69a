"""Is this machine fit to run on its card? What doctor finds of devices, rights, driver and kernel."""

from __future__ import annotations

from collections.abc import Callable

from rocwheel.errors import CheckError
from rocwright.catalog.load import Catalog
from rocwright.diagnosis.facts import host_facts
from rocwright.doctor.findings.devices import devices
from rocwright.doctor.findings.driver import driver
from rocwright.doctor.findings.model import Finding
from rocwright.doctor.this_machine import here, only
from rocwright.home import Home
from rocwright.machine.model import Machine
from rocwright.machine.tree import Tree
from rocwright.serving.models.fit import Need, Room, fits, room_of
from rocwright.serving.models.model import Model


def machine_here(catalog: Catalog, home: Home) -> Machine:
    """This machine, as far as a run on it asks."""
    with Tree() as tree:
        return here(tree, catalog, host_facts(), home, tools=False)


def check_machine(
    machine: Machine, catalog: Catalog, stack: str, target: str, say: Callable[[str], None]
) -> None:
    """Tell what could trouble the stack on its card here. Raises CheckError for what makes it impossible."""
    facts, machine = host_facts(), only(machine, {target})
    found = [*devices(machine, facts, (stack,)), *driver(machine, catalog, facts, (stack,))]
    concerned = [one for one in found if stack in one.stacks]
    for one in concerned:
        if one.grade == "warning":
            say(f"warning: {one.what}{f' ({one.remedy})' if one.remedy else ''}")
    errors = [one for one in concerned if one.grade == "error"]
    if errors:
        raise _impossible(stack, target, errors)


def room_here(machine: Machine, target: str) -> Room | None:
    """The memory of this machine's GPU that is a `target`, or the machine's own where that is empty."""
    gpu = next((one for one in machine.gpus if one.target == target), None) if target else None
    return room_of(machine, gpu)


def check_fit(model: Model, room: Room | None, said: Need | None, say: Callable[[str], None]) -> int:
    """Hold a model against the memory before it is loaded, by what its server `said`, else by an estimate.
    Raises OutOfMemoryError.

    Gives the bytes that it takes at most where they are there, else 0: what is said then is to be said again.
    """
    told, need = fits(model, room, said=said)
    if told:
        say(f"warning: {told}")
    return 0 if told or need is None else need.most


def _impossible(stack: str, target: str, errors: list[Finding]) -> CheckError:
    first = errors[0]
    return CheckError(
        f"{stack} cannot use the {target} of this machine: {first.what}",
        cause=first.why,
        next_step=first.remedy or "rocwright doctor",
        detail="\n".join(one.what for one in errors[1:]),
    )
