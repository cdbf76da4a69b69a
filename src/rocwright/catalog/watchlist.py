"""What people watch upstream beside releases: pages, threads and open questions, as data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from rocbase.http.address import checked
from rocbase.model import Frozen
from rocbase.toml.read import Reader
from rocwright.catalog.folders import catalog_folders
from rocwright.catalog.remedy import Name, Text

WATCHLIST = "watchlist.toml"


class Followed(Frozen):
    """A page or thread to look out for: what it is about, and how it stood when somebody looked last.

    `issues` are the known issues that it bears on, `components` and `targets` what it concerns (none: any).
    """

    name: Name
    about: Text
    address: Annotated[str, Field(pattern=r"^https?://\S+$"), AfterValidator(checked)]
    stands: Text
    issues: tuple[Name, ...] = ()
    components: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    source: Text


class WatchlistFile(Frozen):
    """watchlist.toml."""

    followed: tuple[Followed, ...] = ()


def read_watchlist(reader: Reader) -> tuple[Followed, ...]:
    """Every entry, the folders' own over those of folders below."""
    rows = (
        (path, f"followed.{number}", row)
        for path in reader.layers(WATCHLIST)
        for number, row in enumerate(reader.rows(path, reader.data(path), "followed"))
    )
    return tuple(reader.named(Followed, rows).values())


def the_watchlist() -> tuple[Followed, ...]:
    """The entries of the catalog in use. Raises InputError where the table is wrong."""
    return _the_watchlist(tuple(str(folder) for folder in catalog_folders()))


@cache
def _the_watchlist(folders: Sequence[str]) -> tuple[Followed, ...]:
    return read_watchlist(Reader([Path(folder) for folder in folders]))
