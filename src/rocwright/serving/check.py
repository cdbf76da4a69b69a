"""Is this machine fit to run on its card? What doctor finds of devices, rights, driver and kernel."""

from __future__ import annotations

from collections.abc import Callable

from rocwheel.errors import CheckError
from rocwright.catalog.load import Catalog
from rocwright.diagnosis.facts import host_facts
from rocwright.doctor.doctor import here, only
from rocwright.doctor.findings.devices import devices
from rocwright.doctor.findings.driver import driver
from rocwright.doctor.findings.model import Finding
from rocwright.home import Home
from rocwright.machine.tree import Tree
from rocwright.serving.models.fit import fits
from rocwright.serving.models.model import Model


def check_machine(catalog: Catalog, home: Home, stack: str, target: str, say: Callable[[str], None]) -> None:
    """Tell what could trouble the stack on its card here. Raises CheckError for what makes it impossible."""
    facts = host_facts()
    with Tree() as tree:
        machine = only(here(tree, catalog, facts, home), {target})
    found = [*devices(machine, facts, (stack,)), *driver(machine, catalog, facts, (stack,))]
    concerned = [one for one in found if stack in one.stacks]
    for one in concerned:
        if one.grade == "warning":
            say(f"warning: {one.what}{f' ({one.remedy})' if one.remedy else ''}")
    errors = [one for one in concerned if one.grade == "error"]
    if errors:
        raise _impossible(stack, target, errors)


def check_fit(catalog: Catalog, home: Home, model: Model, target: str, say: Callable[[str], None]) -> None:
    """Hold a model against the memory of this machine's GPU that is a `target`, or against the machine's own
    where `target` is empty, before it is loaded. Raises OutOfMemoryError."""
    with Tree() as tree:
        machine = here(tree, catalog, host_facts(), home)
    gpu = next((one for one in machine.gpus if one.target == target), None) if target else None
    told = fits(model, machine, gpu)
    if told:
        say(f"warning: {told}")


def _impossible(stack: str, target: str, errors: list[Finding]) -> CheckError:
    first = errors[0]
    return CheckError(
        f"{stack} cannot use the {target} of this machine: {first.what}",
        cause=first.why,
        next_step=first.remedy or "rocwright doctor",
        detail="\n".join(one.what for one in errors[1:]),
    )
