"""The notebook server that the catalog knows."""

from __future__ import annotations

from functools import cache

from rocbase.model import Frozen
from rocbase.toml.read import Reader, parse
from rocwright.catalog.folders import catalog_folders
from rocwright.catalog.server import Server

DATA = "notebook.toml"


class Notebook(Frozen):
    """What a notebook server is: packages that it `requires` in the environment, and how it is started."""

    name: str
    summary: str
    requires: tuple[str, ...]
    source: str
    server: Server


@cache
def the_notebook() -> Notebook:
    """What the catalog says; the topmost folder's, where several do."""
    reader = Reader(catalog_folders())
    path = reader.layers(DATA)[-1]
    return parse(Notebook, reader.data(path), path)
