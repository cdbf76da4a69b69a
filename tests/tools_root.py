"""The tools root in tests: the host's own programs, or one that all tests of a run share."""

from __future__ import annotations

from pathlib import Path

from samples.fetched import FOLDER

from rocwright.config import store_of
from rocwright.home import Home
from rocwright.sources.bases.tools import Tools


class HostTools(Tools):
    """The programs of a Debian host, which the tests have installed."""

    root = Path("/")
    digest = ""


def shared_tools() -> Home:
    """Return the home whose tools root all tests share; the first that needs it makes it."""
    home = Home(FOLDER)
    Tools(home).record  # noqa: B018 - it is made here
    return home


def give_tools(home: Home, shared: Home) -> None:
    """Put the shared tools root into the store of a home."""
    record = Tools(shared).record
    with store_of(shared).opened(record.output("root").sha256) as packed:
        store_of(home).put_file(Path(packed.name))
    store_of(home).put_record(record)
