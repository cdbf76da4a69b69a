"""What this machine can do, and what a log tells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rocwright.api.gpus import AUTO, chosen_targets, named_gpus

if TYPE_CHECKING:
    from rocwright.diagnosis.diagnose import Diagnosis
    from rocwright.doctor.doctor import Report


def diagnose(
    log: str | Path, *, component: str = "", version: str = "", gpu: str | Sequence[str] = (), base: str = ""
) -> Diagnosis:
    """The first error of a log, and what is known of it.

    The log may be of any tool and any size, compressed, cut off. What is known of the `component`, its
    `version`, the GPUs and the base rules issues out. Raises InputError where the log cannot be read.
    """
    from rocwright.diagnosis.diagnose import Where
    from rocwright.diagnosis.diagnose import diagnose as search
    from rocwright.diagnosis.read_log import open_log, pieces

    named = named_gpus(gpu)
    targets = chosen_targets(named) if named else ()
    where = Where(component=component, version=version, targets=targets, base=base)
    with open_log(Path(log)) as file:
        return search(pieces(file), where)


def doctor(stack: str = "", gpu: str | Sequence[str] = (), *, root: str | Path = "/") -> Report:
    """What is wrong with this machine for a stack, or for any, what mends it, and what the machine can do.

    `gpu` are those of the machine's GPUs that it is judged for, all by default; `root` is a folder with
    another machine's /sys, /proc, /dev and /etc. No sandbox engine is tried. Raises InputError for a stack or
    GPU that is not known, or not in the machine.
    """
    from rocwright.catalog.load import the_catalog
    from rocwright.diagnosis.facts import host_facts
    from rocwright.doctor.doctor import examine, here, only
    from rocwright.home import Home
    from rocwright.machine.tree import Tree

    catalog, facts, home = the_catalog(), host_facts(), Home.default()
    names = named_gpus(gpu)
    wanted = chosen_targets([one for one in names if one != AUTO]) if set(names) - {AUTO} else ()
    stacks = [catalog.stack(stack).name] if stack else list(catalog.stacks)
    with Tree(Path(root).absolute()) as tree:
        machine = only(here(tree, catalog, facts, home), wanted)
        return examine(machine, catalog, facts, stacks, home if tree.live else None)
