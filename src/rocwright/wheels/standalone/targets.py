"""Which GPU targets a file of kernels is for, by the names in its path."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from rocwright.wheels.generic import covers
from rocwright.wheels.gpu import machines

_FAMILY = re.compile(r"gfx[0-9a-f]*[xX]+")


def targets_named(path: str) -> tuple[str, ...]:
    """The targets in a path: gfx90a in gfx90a68.kdb (68 counts compute units), gfx11xx for a family."""
    families = _FAMILY.findall(path)
    return tuple(
        dict.fromkeys((*(one.lower() for one in families), *_known().findall(_FAMILY.sub("", path))))
    )


def is_for(path: str, wanted: Iterable[str]) -> bool:
    """Whether a file serves one of the targets `wanted` (with or without features), or names none."""
    named = targets_named(path)
    names = [one.partition(":")[0] for one in wanted]
    return not named or not names or any(_serves(one, name) for one in named for name in names)


def covered(paths: Iterable[str], target: str) -> bool:
    """Whether files are there for a target; also where none of them names any target."""
    named = [targets_named(path) for path in paths]
    name = target.partition(":")[0]
    return not any(named) or any(_serves(one, name) for found in named for one in found)


def _serves(named: str, target: str) -> bool:
    if "x" in named.removeprefix("gfx"):
        return re.fullmatch("gfx" + named.removeprefix("gfx").replace("x", "[0-9a-f]"), target) is not None
    return named == target or target in covers(named)


@cache
def _known() -> re.Pattern[str]:
    longest = sorted(machines().values(), key=len, reverse=True)
    return re.compile("|".join(re.escape(name) for name in longest))
