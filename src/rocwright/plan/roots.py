"""The steps of a root file system: its packages, and the root made of them."""

from __future__ import annotations

from rocwright.catalog.base import filled
from rocwright.catalog.load import Catalog, lookup
from rocwright.model.step_environment import PACKAGES
from rocwright.model.steps import BaseAction, FetchAction, ImageOrigin, Input, Resources, Step
from rocwright.plan.resolve.model import LockedRoot

# A root file system takes about this many times the size of its packages, archive and folder together.
UNPACKED = 5


# The name of the step that makes the root file system in which a product runs, and nothing is built.
RUN_ROOT = "root/run"


def root_steps(root: LockedRoot, catalog: Catalog) -> tuple[Step, Step]:
    """Fetch the packages of a root file system, and make it of them."""
    size = sum(pin.size for pin in root.packages)
    fetch_step = Step(
        name=f"packages/{root.role}",
        component=f"{root.base}:{root.suite}",
        action=FetchAction(files=root.packages, pending=root.pending),
        resources=Resources(disk=size, seconds=10),
    )
    root_step = Step(
        name=f"root/{root.role}",
        component=f"{root.base}:{root.suite}",
        action=base_action(root, catalog),
        inputs=(Input(name="packages", key=fetch_step.key, output="*"),),
        resources=Resources(memory=512 * 1024**2, disk=UNPACKED * size, seconds=60, limit=3600),
    )
    return fetch_step, root_step


def base_action(root: LockedRoot, catalog: Catalog) -> BaseAction:
    """How the root file system of a lock is made."""
    image = next((pin.sha256 for pin in root.packages if isinstance(pin.origin, ImageOrigin)), root.image)
    if not image:
        return BaseAction(suite=root.suite, architecture=root.architecture)
    manager = lookup("package manager", root.manager, catalog.managers)
    return BaseAction(
        family="image",
        suite=root.suite,
        architecture=root.architecture,
        image=image,
        install=filled(manager.install, folder=PACKAGES),
        env=manager.env,
        forget=manager.forget,
    )
