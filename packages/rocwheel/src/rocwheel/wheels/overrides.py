"""How a card is made to pass for another, and what is known of those that tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from rocbase.model import Frozen
from rocbase.toml.read import Reader, parse
from rocwheel.tables import data_folders

FILE = "overrides.toml"


class Override(Frozen):
    """What is known of making the card pass for another: its `identity` is the value that changes nothing.

    `spoof` are the targets that it was made to pass for, `values` those seen in practice.
    """

    identity: str
    spoof: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    warning: str = ""


class OverrideOf(Override):
    """The same of a target, with its sources."""

    target: str
    source: Annotated[tuple[str, ...], Field(min_length=1)]

    @property
    def plain(self) -> Override:
        return Override.model_validate(self.model_dump(exclude={"target", "source"}))


class OverridesFile(Frozen):
    """overrides.toml."""

    variable: str = ""
    override: tuple[OverrideOf, ...] = ()


@dataclass(frozen=True, slots=True)
class Overrides:
    """What is known, by target; `variable` is set to the identity of the card that is passed for."""

    variable: str
    by_target: Mapping[str, Override]


def the_overrides() -> Overrides:
    """Those in use: the user's own over the carried ones. Raises InputError."""
    return overrides_in(data_folders())


@cache
def overrides_in(folders: tuple[Path, ...]) -> Overrides:
    """Those of folders, the topmost first. Raises InputError that names the file and what is wrong in it."""
    reader = Reader(folders)
    variable, overrides = "", dict[str, Override]()
    for path in reader.layers(FILE):
        table = parse(OverridesFile, reader.data(path), path)
        variable = table.variable or variable
        overrides |= {override.target: override.plain for override in table.override}
    # what a user's own catalog of rocwright says of a target
    for path in (folder / "targets.toml" for folder in reversed(folders)):
        rows = reader.rows(path, reader.data(path), "target") if path.is_file() else []
        for row in rows:
            if "override" in row:
                overrides[str(row.get("name"))] = parse(Override, row["override"], path)
    return Overrides(variable, overrides)
