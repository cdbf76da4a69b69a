"""Is this machine fit to run on its card? What doctor finds of devices, rights, driver and kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from rocbase.errors import CheckError
from rocwright.catalog.detect import find_gpus
from rocwright.catalog.load import Catalog
from rocwright.diagnosis.facts import host_facts
from rocwright.diagnosis.machine.model import Machine
from rocwright.diagnosis.machine.tree import Tree
from rocwright.doctor.findings.devices import devices
from rocwright.doctor.findings.driver import driver
from rocwright.doctor.findings.model import DoctorFinding
from rocwright.doctor.this_machine import here, only
from rocwright.home import Home
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
    findings = [*devices(machine, facts, (stack,)), *driver(machine, catalog, facts, (stack,))]
    concerned = [finding for finding in findings if stack in finding.stacks]
    for finding in concerned:
        if finding.grade == "warning":
            say(f"warning: {finding.what}{f' ({finding.remedy})' if finding.remedy else ''}")
    errors = [finding for finding in concerned if finding.grade == "error"]
    if errors:
        raise _impossible(stack, target, errors)


def _opened(machine: Machine, catalog: Catalog, stack: str) -> Machine:
    """The machine as a stack's server sees it: that it may not use what it does not open is no trouble."""
    component = served_component(catalog, stack)
    opens = component.serve.devices if component is not None and component.serve is not None else ()
    rights = tuple(
        right
        if any(PurePath(right.path).is_relative_to(device) for device in opens)
        else right.model_copy(update={"may": True})
        for right in machine.rights
    )
    return machine.model_copy(update={"rights": rights}) if opens else machine


def unknown_cards(catalog: Catalog) -> str:
    """What is said where this machine has AMD GPUs, and none that the catalog knows; else ""."""
    gpus = find_gpus(catalog)
    if not gpus or any(gpu.target in catalog.targets for gpu in gpus):
        return ""
    named = ", ".join(f"{gpu.target or 'no known target'} ({gpu.pci_id})" for gpu in gpus)
    return f"warning: the AMD GPU of this machine is not in the catalog, and nothing is built for it: {named}"


def room_here(machine: Machine, target: str) -> Room | None:
    """The memory of this machine's GPU that is a `target`, or the machine's own where that is empty."""
    gpu = (
        next((candidate for candidate in machine.gpus if candidate.target == target), None)
        if target
        else None
    )
    return room_of(machine, gpu)


def check_fit(model: Model, room: Room | None, reported: ModelNeed | None, say: Callable[[str], None]) -> int:
    """Hold a model against the memory before it is loaded, by what its server `reported`, else an estimate.
    Raises OutOfMemoryError.

    Gives the bytes that it takes at most where they are there, else 0: what is said then is to be said again.
    """
    warning, need = fits(model, room, reported=reported)
    if warning:
        say(f"warning: {warning}")
    return 0 if warning or need is None else need.most


def _impossible(stack: str, target: str, errors: list[DoctorFinding]) -> CheckError:
    first = errors[0]
    return CheckError(
        f"{stack} cannot use the {target} of this machine: {first.what}",
        cause=first.why,
        next_step=first.remedy or "rocwright doctor",
        detail="\n".join(error.what for error in errors[1:]),
    )
