"""`rocwright install`."""

from __future__ import annotations

from pathlib import Path

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import Selection, project_options, the_project
from rocwright.cli.place import say


@click.command("install")
@project_options
@click.option(
    "--into",
    "environment",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="A virtual environment: python3 -m venv FOLDER.",
)
@json_option
def command(selection: Selection, environment: Path, as_json: bool) -> None:
    """Install the wheels of a built stack into your virtual environment, and nothing else.

    Packages that the recipes guard (such as torch) are checked before and after: exactly one working copy may
    exist.
    """
    from rocbase.cli.tell import print_json, print_table
    from rocwright.execution.install import install
    from rocwright.flow import built_lock

    project = the_project(selection)
    wheels = install(project, built_lock(project, say), environment, say)
    if as_json:
        print_json(
            [{"name": wheel.name, "version": wheel.version, "wheel": wheel.path.name} for wheel in wheels]
        )
        return
    print_table(("installed", "version"), [(wheel.name, wheel.version) for wheel in wheels])
