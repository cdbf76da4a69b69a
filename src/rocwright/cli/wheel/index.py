"""`rocwright wheel index build|yank`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocwright.cli.common import json_option

if TYPE_CHECKING:
    from rocwright.wheels.index.examine import Problem

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group("index")
def command() -> None:
    """A folder of wheels as a package index, by GPU too: static pages, an object store, a server."""


@command.command("build")
@click.argument("folder", type=FOLDER)
@click.option("--out", help="A folder, s3://BUCKET/PREFIX, file:///... [default: FOLDER itself]")
@click.option("--all", "everything", is_flag=True, help="Compare every page, as after a change by hand.")
@json_option
def build(folder: Path, out: str | None, everything: bool, as_json: bool) -> None:
    """Write the simple API for the wheels in FOLDER; only what changed since the last time.

    /simple/ is all of them, /TARGET/simple/ those that hold code for a GPU, or none for any.
    Ends with 12 where files had to be left out; the others are in the index then.
    """
    from dataclasses import asdict

    from rocwright.cli.tell import print_json
    from rocwright.wheels.index.cache import opened
    from rocwright.wheels.index.refresh import refresh
    from rocwright.wheels.index.tree import open_tree
    from rocwright.wheels.index.write import write

    tree = open_tree(out or str(folder))
    with opened(folder) as cache:
        look = refresh(folder, cache, _counter("read"))
        done = write(folder, tree, cache, everything=everything, progress=_counter("projects written"))
        views = cache.views()
    if as_json:
        print_json(asdict(look) | {"written": asdict(done), "views": views})
    else:
        click.echo(
            f"{look.listed:,} wheels listed, {look.read:,} read, {look.gone:,} gone; "
            f"{done.pages:,} pages written, {done.wheels:,} wheels brought, {done.removed:,} files removed"
        )
        click.echo(f"views: simple{''.join(f', {view}/simple' for view in views)}")
    _tell(look.problems)


@command.command("yank")
@click.argument("name")
@click.argument("version")
@click.option("--reason", default="", help="Why; installers show it.")
@click.option("--undo", is_flag=True, help="Take it back.")
@click.option(
    "--in", "folder", type=FOLDER, default=".", show_default=True, help="The folder that the wheels lie in."
)
def yank(name: str, version: str, reason: str, undo: bool, folder: Path) -> None:
    """Withdraw a release: installers take it only where it is asked for exactly (yanked.toml)."""
    from rocwright.wheels.index import yanks

    if undo:
        yanks.unyank(folder, name, version)
    else:
        yanks.yank(folder, name, version, reason)
    click.echo(f"rocwright wheel index build {folder} writes it into the pages", err=True)


def _counter(what: str) -> Callable[[int, int], None]:
    """Progress on a terminal, nothing elsewhere."""
    import sys

    if not sys.stderr.isatty():
        return lambda done, of: None

    def tell(done: int, of: int) -> None:
        click.echo(f"\r{what}: {done:,} of {of:,}", err=True, nl=done == of)

    return tell


def _tell(problems: Sequence[Problem]) -> None:
    """Say what was left out; ends the command with 12 where anything was."""
    for one in problems:
        click.echo(f"{click.style('left out', fg='red')}  {one.path}: {one.what}", err=True)
    if problems:
        raise SystemExit(12)
