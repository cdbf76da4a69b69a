"""`rocwheel index build|serve|list|check|yank`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocwheel.cli.common import complete_gpu, json_option

if TYPE_CHECKING:
    from rocwheel.wheels.index.examine import Problem

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group("index")
def command() -> None:
    """Make a package index of a folder of wheels, by GPU too: static pages, an object store, a server."""


@command.command("build")
@click.argument("folder", type=FOLDER)
@click.option("--out", help="A folder, s3://BUCKET/PREFIX, file:///... [default: FOLDER itself]")
@click.option(
    "--all", "everything", is_flag=True, help="Compare every page, in case files were changed by hand."
)
@click.option(
    "--changed",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="WHEEL",
    help="Look at this file of FOLDER alone: it came, changed or went; repeatable.  [default: all]",
)
@json_option
def build(folder: Path, out: str | None, everything: bool, changed: tuple[Path, ...], as_json: bool) -> None:
    """Write the index of the wheels in FOLDER; only what changed is rewritten.

    /simple/ lists all wheels, /TARGET/simple/ those with code for that GPU and those without GPU code. The
    exit code is 12 if files had to be left out; the index then has the others.
    """
    from dataclasses import asdict

    from rocwheel.cli.tell import print_json
    from rocwheel.units import count
    from rocwheel.wheels.index.cache import opened
    from rocwheel.wheels.index.place import open_tree
    from rocwheel.wheels.index.refresh import refresh
    from rocwheel.wheels.index.write import write

    tree = open_tree(out or str(folder))
    with opened(folder) as cache:
        look = refresh(folder, cache, _counter("read"), changed=changed)
        done = write(folder, tree, cache, everything=everything, progress=_counter("projects written"))
    if as_json:
        print_json(asdict(look) | {"written": asdict(done)})
    else:
        click.echo(
            f"{count(look.listed, 'wheel')} listed, {look.read:,} read, {look.gone:,} gone; "
            f"{count(done.pages, 'page')} written, {count(done.wheels, 'wheel')} copied, "
            f"{count(done.removed, 'file')} removed"
        )
        click.echo(f"views: simple{''.join(f', {view}/simple' for view in done.views)}")
    _tell(look.problems)


@command.command("serve")
@click.argument("folder", type=FOLDER)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="[default: a free one]")
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="A host name it is reached by, behind a proxy. On the loopback it answers to no other.",
)
@click.option("--quiet", is_flag=True, help="Do not log each request.")
def serve(folder: Path, host: str, port: int, names: tuple[str, ...], quiet: bool) -> None:
    """Serve the wheels in FOLDER as an index, until Ctrl-C; new files appear by themselves.

    Anyone who can reach the address can read the wheels; by default that is only this machine.
    """
    from rocwheel.cli.common import say
    from rocwheel.wheels.index.serve import run
    from rocwheel.wheels.index.shelf import Shelf

    shelf = Shelf(folder)
    look = shelf.look(_counter("read"))
    for one in look.problems:
        _tell_one(one)
    run(shelf, host, port, say, log=not quiet, names=names)


@command.command("list")
@click.argument("folder", type=FOLDER)
@click.option(
    "--gpu",
    default="",
    shell_complete=complete_gpu,
    help="Only the wheels in the view of this GPU.",
)
@json_option
def list_(folder: Path, gpu: str, as_json: bool) -> None:
    """List the wheels of an index of FOLDER, each with the GPUs that it has code for."""
    from rocwheel.cli.caller import gpus as known
    from rocwheel.cli.tell import print_json, print_table
    from rocwheel.units import size
    from rocwheel.wheels.index.cache import opened
    from rocwheel.wheels.index.pages import for_target
    from rocwheel.wheels.index.refresh import refresh

    target = known().code_target(gpu) if gpu else ""
    with opened(folder) as cache:
        look = refresh(folder, cache, _counter("read"))
        listed = [one for name in cache.projects() for one in cache.wheels(name)]
    listed = for_target(listed, target) if target else listed
    if as_json:
        rows = [
            one.wheel.seen._asdict()
            | {
                "project": one.wheel.project,
                "version": one.wheel.version,
                "requires_python": one.wheel.requires_python,
                "sha256": one.wheel.sha256,
                "targets": one.wheel.targets,
                "yanked": one.yanked,
            }
            for one in listed
        ]
        print_json(
            {"wheels": rows, "left_out": [{"path": one.path, "what": one.what} for one in look.problems]}
        )
    else:
        print_table(
            ("project", "version", "listed for", "size", "yanked", "file"),
            [
                (
                    one.wheel.project,
                    one.wheel.version,
                    "every GPU" if one.wheel.targets is None else " ".join(one.wheel.targets) or "not known",
                    size(one.wheel.seen.size),
                    "" if one.yanked is None else one.yanked or "yes",
                    one.wheel.seen.path,
                )
                for one in listed
            ],
            right=(3,),
        )
    _tell(look.problems)


@command.command("check")
@click.argument("place")
@click.option(
    "--quick", is_flag=True, help="Check only that the wheels exist and their sizes, not their hashes."
)
@json_option
def check(place: str, quick: bool, as_json: bool) -> None:
    """Check the index in PLACE (a folder, or a URL): links, hashes, metadata.

    The exit code is 12 if something is wrong.
    """
    from rocwheel.cli.tell import print_json
    from rocwheel.errors import CheckError
    from rocwheel.units import count
    from rocwheel.wheels.index.check import check as find_faults
    from rocwheel.wheels.index.place import open_tree

    found = find_faults(open_tree(place), hashes=not quick)
    if as_json:
        print_json([{"place": one.place, "what": one.what} for one in found])
    else:
        for one in found:
            click.echo(f"{click.style('wrong', fg='red')}  {one.place}: {one.what}")
        click.echo(f"{count(len(found), 'problem')} found" if found else "no problems found")
    if found:
        raise SystemExit(CheckError.failure.exit_code)


@command.command("yank")
@click.argument("name")
@click.argument("version")
@click.option("--reason", default="", help="The reason; installers show it.")
@click.option("--undo", is_flag=True, help="Undo an earlier yank.")
@click.option(
    "--in", "folder", type=FOLDER, default=".", show_default=True, help="The folder with the wheels."
)
def yank(name: str, version: str, reason: str, undo: bool, folder: Path) -> None:
    """Withdraw a release: installers take it only if exactly this version is asked for (yanked.toml)."""
    from rocwheel.wheels.index import yanks

    if undo:
        yanks.unyank(folder, name, version)
    else:
        yanks.yank(folder, name, version, reason)
    click.echo(f"to update the pages: rocwheel index build {folder}", err=True)


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
    from rocwheel.errors import CheckError

    for one in problems:
        _tell_one(one)
    if problems:
        raise SystemExit(CheckError.failure.exit_code)


def _tell_one(problem: Problem) -> None:
    click.echo(f"{click.style('left out', fg='red')}  {problem.path}: {problem.what}", err=True)
