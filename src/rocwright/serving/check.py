"""Is this machine fit to run on its card? What doctor finds of devices, rights, driver and kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from rocbase.errors import CheckError
from rocwright.catalog.detect import find_gpus
from rocwright.catalog.load import Catalog
from rocwright.diagnosis.facts import host_facts
from rocwright.doctor.findings.devices import devices
from rocwright.doctor.findings.driver import driver
from rocwright.doctor.findings.model import DoctorFinding
from rocwright.doctor.this_machine import here, only
from rocwright.home import Home
from rocwright.machine.model import Machine
from rocwright.machine.tree import Tree
from rocwright.serving.choose import served_component
from rocwright.serving.models.fit import ModelNeed, Room, fits, room_of
from rocwright.serving.models.model import Model


def machine_here(catalog: Catalog, home: Home) -> Machine:
    """This machine, as far as a run on it asks."""
    with Tree() as tree:
        return here(tree, catalog, host_facts(), home, tools=False)


def check_machine(
    machine: Machine, catalog: Catalog, stack: str, target: str, say: Callable[[str], None]
) -> None:
    """Tell what could trouble the stack on its card here. Raises CheckError for what makes it impossible.

    Of the devices only those count that its server opens: Vulkan needs no /dev/kfd.
    """
    facts, machine = host_facts(), _opened(only(machine, {target}), catalog, stack)
    found = [*devices(machine, facts, (stack,)), *driver(machine, catalog, facts, (stack,))]
    concerned = [one for one in found if stack in one.stacks]
    for one in concerned:
        if one.grade == "warning":
            say(f"warning: {one.what}{f' ({one.remedy})' if one.remedy else ''}")
    errors = [one for one in concerned if one.grade == "error"]
    if errors:
        raise _impossible(stack, target, errors)


def _opened(machine: Machine, catalog: Catalog, stack: str) -> Machine:
    """The machine as a stack's server sees it: that it may not use what it does not open is no trouble."""
    component = served_component(catalog, stack)
    opens = component.serve.devices if component is not None and component.serve is not None else ()
    rights = tuple(
        one
        if any(PurePath(one.path).is_relative_to(device) for device in opens)
        else one.model_copy(update={"may": True})
        for one in machine.rights
    )
    return machine.model_copy(update={"rights": rights}) if opens else machine


def unknown_cards(catalog: Catalog) -> str:
    """What is said where this machine has AMD GPUs, and none that the catalog knows; else ""."""
    found = find_gpus(catalog)
    if not found or any(one.target in catalog.targets for one in found):
        return ""
    named = ", ".join(f"{one.target or 'no known target'} ({one.pci_id})" for one in found)
    return f"warning: the AMD GPU of this machine is not in the catalog, and nothing is built for it: {named}"


def room_here(machine: Machine, target: str) -> Room | None:
    """The memory of this machine's GPU that is a `target`, or the machine's own where that is empty."""
    gpu = next((one for one in machine.gpus if one.target == target), None) if target else None
    return room_of(machine, gpu)


def check_fit(model: Model, room: Room | None, said: ModelNeed | None, say: Callable[[str], None]) -> int:
    """Hold a model against the memory before it is loaded, by what its server `said`, else by an estimate.
    Raises OutOfMemoryError.

    Gives the bytes that it takes at most where they are there, else 0: what is said then is to be said again.
    """
    told, need = fits(model, room, said=said)
    if told:
        say(f"warning: {told}")
    return 0 if told or need is None else need.most


def _impossible(stack: str, target: str, errors: list[DoctorFinding]) -> CheckError:
    first = errors[0]
    return CheckError(
        f"{stack} cannot use the {target} of this machine: {first.what}",
        cause=first.why,
        next_step=first.remedy or "rocwright doctor",
        detail="\n".join(one.what for one in errors[1:]),
    )
