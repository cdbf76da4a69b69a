"""`rocwright watch`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from rocbase.cli.options import json_option, say
from rocwright.cli.common import complete, complete_gpu, here, tells_changes


def settings_options(function: click.decorators.FC) -> click.decorators.FC:
    """What stands over `[watch]` of rocwright.toml."""
    for option in (
        click.option(
            "--seconds",
            type=click.FloatRange(0.1, 3600),
            help="Seconds that a source may take. [default: 30]",
        ),
        click.option(
            "--cool-down",
            type=click.IntRange(0),
            help="Days from a release until it is allowed. [default: 7]",
        ),
        click.option(
            "--take",
            type=click.Choice(["patch", "stable", "all"]),
            help="patch: the same minor version; stable: no pre-releases [default]; all.",
        ),
    ):
        function = option(function)
    return function


@click.command("watch")
@click.argument("stacks", nargs=-1, shell_complete=complete("stack"))
@click.option(
    "--gpu", help="For the stacks named; by default the GPU of their first row.", shell_complete=complete_gpu
)
@click.option("--base", help="Likewise.", shell_complete=complete("base"))
@settings_options
@click.option("--list", "list_", is_flag=True, help="List pages and threads worth following; asks no source.")
@click.option("--quiet", is_flag=True, help="Print nothing if there is nothing new; for cron.")
@click.option("--exit-code", "news_counts", is_flag=True, help="Exit with 20 if an update is allowed.")
@json_option
@tells_changes
def command(
    stacks: tuple[str, ...],
    gpu: str | None,
    base: str | None,
    take: str | None,
    cool_down: int | None,
    seconds: float | None,
    list_: bool,
    quiet: bool,
    news_counts: bool,
    as_json: bool,
) -> None:
    """Show new upstream versions that the lock does not have.

    Of the project here, or of the stacks named: git tags and branches, package indexes, images, packages
    of the distribution, archives. How old, where the notes are, and whether the constraints allow it. Exit
    code 22: a pinned tag or file was changed upstream; 21: a source did not answer.
    """
    from rocbase.cli.tell import print_json
    from rocwright import api
    from rocwright.catalog.load import the_catalog
    from rocwright.follow.watch.look import watch
    from rocwright.follow.watch.projects import locks_to_watch, watch_settings
    from rocwright.follow.watch.tell import tell_report
    from rocwright.home import Home

    target = api.target(gpu, say).name if gpu else ""
    if list_:
        _show_list(target, as_json)
        return
    home = Home.default()
    folder = here() if not stacks else Path.cwd()
    locks = locks_to_watch(folder, stacks, target, base or "", home)
    changes = {"take": take, "cool_down": cool_down, "seconds": seconds}
    settings = watch_settings(folder, changes)
    report = watch(locks, settings, the_catalog(), home)
    code = report.exit_code(news_counts=news_counts)
    if as_json:
        print_json(report.model_dump(mode="json") | {"exit_code": code})
    else:
        for line in tell_report(report, quiet=quiet):
            alarm = line.startswith("ALARM")
            click.echo(click.style(line, fg="red", bold=True) if alarm else line)
    sys.exit(code)


def _show_list(gpu: str, as_json: bool) -> None:
    """The watch-list; of a GPU, where one is named."""
    from rocbase.cli.tell import print_json
    from rocwright.catalog.watchlist import the_watchlist

    rows = [row for row in the_watchlist() if not gpu or not row.targets or gpu in row.targets]
    if as_json:
        print_json([row.model_dump(mode="json") for row in rows])
        return
    for row in rows:
        concerns = ", ".join((*row.components, *row.targets)) or "any"
        click.echo(f"{click.style(row.name, bold=True)} ({concerns}): {row.about}")
        click.echo(f"  {row.address}\n  {row.stands}")
