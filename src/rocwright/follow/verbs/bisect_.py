"""`rocwright bisect`."""

from __future__ import annotations

from pathlib import Path

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import Selection, build_options, project_options, the_project
from rocwright.cli.place import say
from rocwright.execution.options import BuildOptions

_LOCK_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("bisect")
@project_options
@click.option("--good", type=_LOCK_FILE, help="A lock that builds; by default the known-good "
              "channel's where there is one, else the project's own.")  # fmt: skip
@click.option("--bad", type=_LOCK_FILE, help="A lock that fails; the candidate of rocwright bump by default.")
@click.option(
    "--no-commits", is_flag=True, help="Only name the changed pins; do not search for the commit or package."
)
@click.option("--no-checks", is_flag=True, help="Only build; do not run checks.")
@click.option("--report", "folder", type=click.Path(file_okay=False, path_type=Path), help="Write a page for "
              "an upstream bug, and the locks to repeat it, into this folder.")  # fmt: skip
@build_options("jobs", "engine")
@json_option
def command(
    selection: Selection,
    good: Path | None,
    bad: Path | None,
    no_commits: bool,
    no_checks: bool,
    folder: Path | None,
    options: BuildOptions,
    as_json: bool,
) -> None:
    """Find the upstream change that broke a build, between a lock that builds and one that fails.

    Changes between the two locks are tried in halves, with all that the store has, until the smallest set
    that fails together is left; then the commit within a component's range, or the packages of the base.
    A search that was stopped continues where it was.
    """
    from rocbase.cli.tell import print_json
    from rocwright.execution.progress import choose_progress
    from rocwright.follow.bisection.report import tell, write_report
    from rocwright.follow.bisection.run import bisect
    from rocwright.follow.bisection.trial import LockTrials
    from rocwright.follow.cycle.row import FollowedRow
    from rocwright.follow.watch.projects import candidate_path
    from rocwright.plan.resolve.files import read_lock

    project = the_project(selection)
    known_good = FollowedRow.of(project.request, project.lock_path.parent, project).lock("known-good")
    good_lock = read_lock(good) if good else known_good or read_lock(project.lock_path)
    bad_lock = read_lock(bad or candidate_path(project))
    with choose_progress() as progress:
        trials = LockTrials(
            project=project,
            options=options,
            progress=progress,
            say=progress.say,
            checks=not no_checks,
        )
        report = bisect(good_lock, bad_lock, trials, narrow=not no_commits)
    written = write_report(report, good_lock, bad_lock, folder) if folder else None
    if as_json:
        print_json(report.model_dump(mode="json"))
        return
    for line in tell(report):
        click.echo(line)
    if written:
        say(f"report: {written}")
