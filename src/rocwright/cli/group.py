"""The command `rocwright` itself, with its verbs."""

from __future__ import annotations

from typing import cast

import click

from rocbase import errors
from rocbase.cli.verbs import Verbs
from rocwright.cli import ELSEWHERE, MODULES, PLUGINS, SECTIONS, VERBS


def _plugin(verb: str) -> click.Command | None:
    from rocwright.plugins import load  # help imports no tables of packages

    return cast("click.Command | None", load(PLUGINS, verb))


def _installer(program: str) -> str:
    from rocwright.sources.programs import install_command

    return install_command([program])


@click.group(
    cls=Verbs,
    verbs=VERBS,
    sections=SECTIONS,
    package="rocwright.cli",
    modules=MODULES,
    elsewhere=ELSEWHERE,
    load=_plugin,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="rocwright", prog_name="rocwright")
@click.option("--debug", is_flag=True, help="Show tracebacks of failures.")
@click.option(
    "--stop-with",
    type=int,
    metavar="PID",
    hidden=True,
    help="The program that starts this one; it ends when that ends.",
)
@click.pass_context
def cli(context: click.Context, debug: bool, stop_with: int | None) -> None:
    """The ROCm machine-learning stack for AMD GPUs, built reproducibly.

    A GPU, a stack, a base: rocwright gives a lock, a plan, and artifacts that it has checked.
    """
    context.obj = {"debug": debug}
    errors.how_to_install = _installer
    if stop_with is not None:
        from rocbase.processes.parent import stop_with as stop

        stop(stop_with)
