"""Which GPU targets a file of kernels is for, by the names in its path."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocwheel.wheels.devicecode.generic import covers
from rocwheel.wheels.devicecode.gpu import any_machine, machines_of

_FAMILY = re.compile(r"gfx[0-9a-f]*[xX]+")


def targets_named(path: str) -> tuple[str, ...]:
    """The targets in a path: gfx90a in gfx90a68.kdb (68 counts compute units), gfx11xx for a family."""
    families = _FAMILY.findall(path)
    machines = re.findall(any_machine(), _FAMILY.sub("", path))
    return tuple(dict.fromkeys((*(family.lower() for family in families), *machines)))


def is_for(path: str, targets: Iterable[str]) -> bool:
    """Whether a file serves one of `targets` (with or without features), or names none."""
    named = targets_named(path)
    names = [target.partition(":")[0] for target in targets]
    return not named or not names or any(_serves(target, name) for target in named for name in names)


def covered(paths: Iterable[str], target: str) -> bool:
    """Whether files are there for a target; also where none of them names any target."""
    named = [targets_named(path) for path in paths]
    name = target.partition(":")[0]
    return not any(named) or any(_serves(named_target, name) for targets in named for named_target in targets)


def _serves(named: str, target: str) -> bool:
    return target in machines_of(named) or target in covers(named)
