"""Generic targets (gfx11-generic): which processors each of them covers. Source: the catalog's table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from rocbase.errors import InputError
from rocbase.toml.folders import layers, read_toml
from rocwheel.tables import data_folders


@cache
def generic_targets() -> Mapping[str, tuple[str, ...]]:
    """The processors that each generic target covers. Raises InputError where the table is wrong."""
    by_generic: dict[str, tuple[str, ...]] = {}
    for path in layers("generic_targets.toml", data_folders()):
        table = read_toml(path).get("covers")
        if not isinstance(table, dict) or not all(isinstance(value, list) for value in table.values()):
            raise InputError(
                f"{path}: `covers` is not a table of lists",
                cause="it is missing, or one of its values is not a list",
                next_step='write each generic target below [covers] as NAME = ["gfx1100", ...]',
            )
        by_generic |= {name: tuple(map(str, covered)) for name, covered in table.items()}
    return by_generic


def covers(generic: str) -> tuple[str, ...]:
    """What a generic target covers; nothing for a target that is not generic."""
    return generic_targets().get(generic, ())


def covering(target: str) -> tuple[str, ...]:
    """The generic targets whose code runs on a processor."""
    return tuple(name for name, covered in generic_targets().items() if target in covered)
