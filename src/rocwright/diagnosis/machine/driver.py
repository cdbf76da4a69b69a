"""The kernel, its graphics driver, and the limit on what graphics may take of the memory."""

from __future__ import annotations

from rocwright.diagnosis.facts import HostFacts
from rocwright.diagnosis.machine.kernel import read_settings_of_modules
from rocwright.diagnosis.machine.model import Driver, PageLimit
from rocwright.diagnosis.machine.tree import Tree, is_number


def read_driver(tree: Tree, facts: HostFacts) -> Driver:
    """Version of the kernel, and whether the driver is there (loaded, or built in and in use)."""
    folder = f"/sys/module/{facts.driver.module}"
    return Driver(
        kernel=tree.text("/proc/sys/kernel/osrelease") or "",
        module=bool(tree.names(folder)),
        version=tree.text(f"{folder}/version") or "",
        command_line=tree.text("/proc/cmdline") or "",
        settings=read_settings_of_modules(tree, facts),
    )


def read_page_limit(tree: Tree, facts: HostFacts) -> PageLimit | None:
    """The first module of those known that has the limit."""
    for module in facts.shares_memory.modules:
        folder = f"/sys/module/{module}/parameters"
        if tree.names(folder):
            return PageLimit(
                module=module,
                pages_limit=tree.number(f"{folder}/pages_limit"),
                page_pool_size=tree.number(f"{folder}/page_pool_size"),
            )
    return None


def read_iommu(tree: Tree) -> tuple[str, ...]:
    """The IOMMUs in use, by the kernel's names."""
    return tuple(tree.names("/sys/class/iommu"))


def read_settings(tree: Tree, facts: HostFacts) -> dict[str, int]:
    """Each setting of the kernel that the catalog watches and this one has."""
    readings = ((setting.file, tree.number(setting.file)) for setting in facts.setting)
    return {file: value for file, value in readings if value is not None}


def read_processors(tree: Tree) -> int:
    """Processors that are on line."""
    text = tree.text("/sys/devices/system/cpu/online") or "0"
    count = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        if is_number(first) and is_number(last or first):
            count += int(last or first) - int(first) + 1
    return max(1, count)
