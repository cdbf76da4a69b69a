"""What a program that has these verbs among its own may bring: readers of SBOMs, its names of GPUs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import click

from rocbase.units import printable
from rocwheel.cli.quick import paths

_SBOMS, _GPUS = "rocwheel.sboms", "rocwheel.gpus"


class Sboms(Protocol):
    """A module that reads SBOMs."""

    def sboms(self, wheel: Path) -> list[dict[str, Any]]:
        """Each SBOM in a wheel: its `path`, and what else is to be told of it."""

    def line(self, sbom: dict[str, Any]) -> str:
        """One of these for people."""

    def compared(self, old: Path, new: Path, every: bool) -> tuple[dict[str, Any], Sequence[str]]:
        """What the SBOMs of two wheels differ in, as data and as lines; nothing where none can be read."""


class _Plain:
    """Without a reader: which files are SBOMs."""

    def sboms(self, wheel: Path) -> list[dict[str, Any]]:
        return [{"path": path} for path in paths(wheel)]

    def line(self, sbom: dict[str, Any]) -> str:
        return f"SBOM  {printable(sbom['path'])}"

    def compared(self, old: Path, new: Path, every: bool) -> tuple[dict[str, Any], Sequence[str]]:
        return {}, ()


class Gpus(Protocol):
    """A module that knows which GPUs are meant (see rocwheel.wheels.asked)."""

    def code_target(self, name: str) -> str:
        """The target with features that a name means."""

    def code_targets(self, texts: Sequence[str]) -> Sequence[str]:
        """Those that several mean; `auto` is every GPU of this machine."""

    def chosen_targets(self, texts: Sequence[str], say: Callable[[str], None]) -> tuple[str, ...]:
        """Targets without features; `auto` is the strongest GPU of this machine."""


def use(context: click.Context, *, sboms: str, gpus: str) -> None:
    """Go by the modules of these names, in this command and those below it."""
    context.meta[_SBOMS], context.meta[_GPUS] = sboms, gpus


def sboms() -> Sboms:
    """What reads SBOMs for the command that runs: without a reader, they are named only."""
    module = click.get_current_context().meta.get(_SBOMS)
    return _Plain() if module is None else cast("Sboms", importlib.import_module(module))


def gpus() -> Gpus:
    """What knows names of GPUs for the command that runs."""
    module = click.get_current_context().meta.get(_GPUS, "rocwheel.wheels.asked")
    return cast("Gpus", importlib.import_module(module))
