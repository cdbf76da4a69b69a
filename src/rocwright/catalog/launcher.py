"""Compilers that are run through the compiler cache although no link of its own leads to them."""

from __future__ import annotations

from rocbase.model import Frozen


class Launcher(Frozen):
    """How a compiler of a system package, by the catalog's name, is run through the compiler cache: shell
    commands before those of the recipes that ask for the package."""

    package: str
    setup: tuple[str, ...]
    source: str
