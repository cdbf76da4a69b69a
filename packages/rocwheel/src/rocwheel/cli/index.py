"""`rocwheel index build|list|check|yank`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocwheel.cli.common import complete_gpu

if TYPE_CHECKING:
    from rocwheel.wheels.index.model import Problem

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group("index")
def command() -> None:
    """Make a package index of a folder of wheels, by GPU too: static pages for any web server."""


@command.command("build")
@click.argument("folder", type=FOLDER)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Another folder for pages and wheels.  [default: FOLDER itself]",
)
@click.option(
    "--all", "everything", is_flag=True, help="Compare every page, in case files were changed by hand."
)
@json_option
def build(folder: Path, out: Path | None, everything: bool, as_json: bool) -> None:
    """Write the index of the wheels in FOLDER; only what changed is rewritten.

    /simple/ lists all wheels, /TARGET/simple/ those with code for that GPU and those without GPU code. The
    exit code is 12 if files had to be left out; the index then has the others.
    """
    from dataclasses import asdict

    from rocbase.cli.tell import print_json
    from rocbase.units import count
    from rocwheel.wheels.index.write import write

    look, written = write(folder, out or folder, everything=everything, progress=_counter("read"))
    listed = sum(map(len, look.projects.values()))
    if as_json:
        problems = [asdict(problem) for problem in look.problems]
        print_json({"read": look.read, "listed": listed, "problems": problems, "written": asdict(written)})
    else:
        click.echo(
            f"{count(listed, 'wheel')} listed, {look.read:,} read; {count(written.pages, 'page')} written, "
            f"{count(written.wheels, 'wheel')} copied, {count(written.removed, 'file')} removed"
        )
        click.echo(f"views: simple{''.join(f', {view}/simple' for view in written.views)}")
    _tell(look.problems)


@command.command("serve", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1)
def serve(words: tuple[str, ...]) -> None:
    """Say what serves an index."""
    raise click.UsageError(
        "rocwheel does not serve an index itself: run `rocwheel index build FOLDER`, then "
        "`python -m http.server -d FOLDER`"
    )


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
    from rocbase.cli.tell import print_json, print_table
    from rocbase.units import size
    from rocwheel.cli.caller import gpus as known
    from rocwheel.wheels.index.look import look
    from rocwheel.wheels.index.model import MARKER, PAGES, Marker, is_for

    target = known().code_target(gpu) if gpu else ""
    marker = Marker.load(folder / PAGES / MARKER)
    snapshot = look(folder, marker.wheels if marker else (), _counter("read"))
    wheels = [entry for project in snapshot.projects.values() for entry in project]
    listed = [entry for entry in wheels if not target or is_for(entry.wheel.targets, target)]
    if as_json:
        rows = [
            entry.wheel.seen._asdict()
            | {
                "project": entry.wheel.project,
                "version": entry.wheel.version,
                "requires_python": entry.wheel.requires_python,
                "sha256": entry.wheel.sha256,
                "targets": entry.wheel.targets,
                "yanked": entry.yanked,
            }
            for entry in listed
        ]
        print_json(
            {
                "wheels": rows,
                "left_out": [{"path": problem.path, "what": problem.what} for problem in snapshot.problems],
            }
        )
    else:
        print_table(
            ("project", "version", "listed for", "size", "yanked", "file"),
            [
                (
                    entry.wheel.project,
                    entry.wheel.version,
                    "every GPU"
                    if entry.wheel.targets is None
                    else " ".join(entry.wheel.targets) or "not known",
                    size(entry.wheel.seen.size),
                    "" if entry.yanked is None else entry.yanked or "yes",
                    entry.wheel.seen.path,
                )
                for entry in listed
            ],
            right=(3,),
        )
    _tell(snapshot.problems)


@command.command("check")
@click.argument("folder", type=FOLDER)
@click.option(
    "--quick", is_flag=True, help="Check only that the wheels exist and their sizes, not their hashes."
)
@json_option
def check(folder: Path, quick: bool, as_json: bool) -> None:
    """Check the index in FOLDER: links, hashes, metadata.

    The exit code is 12 if something is wrong.
    """
    from rocbase.cli.tell import print_json
    from rocbase.errors import CheckError
    from rocbase.units import count
    from rocwheel.wheels.index.check import check as find_faults

    faults = find_faults(folder, hashes=not quick)
    if as_json:
        print_json([{"place": fault.place, "what": fault.what} for fault in faults])
    else:
        for fault in faults:
            click.echo(f"{click.style('wrong', fg='red')}  {fault.place}: {fault.what}")
        click.echo(f"{count(len(faults), 'problem')} found" if faults else "no problems found")
    if faults:
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


def _counter(label: str) -> Callable[[int, int], None]:
    """Progress on a terminal, nothing elsewhere."""
    import sys

    if not sys.stderr.isatty():
        return lambda completed, total: None

    def tell(completed: int, total: int) -> None:
        click.echo(f"\r{label}: {completed:,} of {total:,}", err=True, nl=completed == total)

    return tell


def _tell(problems: Sequence[Problem]) -> None:
    """Say what was left out; ends the command with 12 where anything was."""
    from rocbase.errors import CheckError

    for problem in problems:
        click.echo(f"{click.style('left out', fg='red')}  {problem.path}: {problem.what}", err=True)
    if problems:
        raise SystemExit(CheckError.failure.exit_code)
