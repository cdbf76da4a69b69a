"""`rocwright wheel`: rocwheel's verbs, which here read SBOMs and go by the catalog's names."""

from __future__ import annotations

import click

from rocbase.cli.verbs import Verbs
from rocwheel.cli import ALIASES, PACKAGE, VERBS
from rocwheel.cli.caller import use


@click.group("wheel", cls=Verbs, verbs=VERBS, aliases=ALIASES, package=PACKAGE)
@click.pass_context
def command(context: click.Context) -> None:
    """The machine code in wheels and libraries: see it, judge it, trim it, serve it."""
    use(context, sboms="rocwright.cli.wheel.sboms", gpus="rocwright.api.gpus")
