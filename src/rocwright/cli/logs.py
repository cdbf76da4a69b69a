"""`rocwright logs [NAME]`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click


@click.command("logs")
@click.argument("name", required=False, metavar="[STEP|SERVER]")
@click.option("--path", "only_path", is_flag=True, help="Only print the path of the log.")
@click.option("--follow", "-f", is_flag=True, help="Go on with what is added, until Ctrl-C.")
def command(name: str | None, only_path: bool, follow: bool) -> None:
    """The log of a server of that name (rocwright ps), else the newest log of a step.

    Without a name it is that of the newest failure, else of the newest step.
    """
    path = _path(name)
    if only_path:
        click.echo(str(path))
        return
    click.echo(f"# {path}", err=True)
    if follow:
        _follow(path)
        return
    with path.open("r", encoding="utf-8", errors="replace") as file:
        shutil.copyfileobj(file, sys.stdout)


def _path(name: str | None) -> Path:
    from rocwright import api
    from rocwright.execution.runs import find_log
    from rocwright.home import Home

    served = api.server_log(name) if name else None
    return served or find_log(Home.default(), name)


def _follow(path: Path) -> None:
    """Until Ctrl-C; the log of a server also ends with it."""
    from contextlib import suppress

    from rocwright import api

    with suppress(KeyboardInterrupt):
        for text in api.follow_log(path):
            click.echo(text, nl=False)
