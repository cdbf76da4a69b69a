"""The command `rocwheel` itself, with its verbs."""

from __future__ import annotations

import click

from rocbase.cli.verbs import Verbs
from rocwheel import __version__
from rocwheel.cli import ALIASES, PACKAGE, VERBS


@click.group(
    cls=Verbs,
    verbs=VERBS,
    aliases=ALIASES,
    package=PACKAGE,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="rocwheel")
@click.option("--debug", is_flag=True, help="Show tracebacks of failures.")
def cli(debug: bool) -> None:
    """Inspect, check, shrink and serve wheels with machine code for AMD GPUs."""
