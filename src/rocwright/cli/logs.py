"""`rocwright logs [STEP]`."""

from __future__ import annotations

import shutil
import sys

import click


@click.command("logs")
@click.argument("step", required=False)
@click.option("--path", "only_path", is_flag=True, help="Only print the path of the log.")
def command(step: str | None, only_path: bool) -> None:
    """The newest log of a step; without one, of the newest failure, else of the newest step."""
    from rocwright.execution.runs import find_log
    from rocwright.home import Home

    path = find_log(Home.default(), step)
    if only_path:
        click.echo(str(path))
        return
    click.echo(f"# {path}", err=True)
    with path.open("r", encoding="utf-8", errors="replace") as file:
        shutil.copyfileobj(file, sys.stdout)
