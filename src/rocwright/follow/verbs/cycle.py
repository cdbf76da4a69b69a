"""`rocwright cycle`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import build_options, here, tells_changes
from rocwright.execution.options import BuildOptions
from rocwright.follow.verbs.watch import settings_options

if TYPE_CHECKING:
    from rocwright.follow.watch.bump import LockCandidate
    from rocwright.plan.resolve.model import Lock
    from rocwright.project import Project


@click.command("cycle")
@settings_options
@click.option("--bisect", is_flag=True, help="If a candidate fails, search for the change that broke it.")
@click.option(
    "--dry-run", is_flag=True, help="Only show what would be tried and why; build and promote nothing."
)
@build_options("jobs", "engine")
@json_option
@tells_changes
def command(
    take: str | None,
    cool_down: int | None,
    seconds: float | None,
    bisect: bool,
    dry_run: bool,
    options: BuildOptions,
    as_json: bool,
) -> None:
    """Follow upstream once: for every row of [[matrix]] a candidate, its build, its checks, its channels.

    Promoted locks are in locks/ROW/CHANNEL.lock. A row that fails keeps its old locks. A cycle that was
    stopped continues where it was. Exit code 0: every row is fine; 1: a candidate failed, or was not tried.
    """
    from rocbase.cli.tell import print_json
    from rocwright.execution.progress import choose_progress
    from rocwright.follow.cycle.channels import channels
    from rocwright.follow.cycle.run import CycleConfig, cycle, look
    from rocwright.follow.cycle.tell import tell
    from rocwright.follow.notify.tell import tell_now
    from rocwright.follow.watch.projects import newest, watch_settings
    from rocwright.follow.watch.upstream import Shared
    from rocwright.plan.resolve.files import read_project
    from rocwright.plan.resolve.folder import PROJECT
    from rocwright.project import project_in
    from rocwright.sources.patience import with_patience

    folder = here()
    settings = watch_settings(folder, {"take": take, "cool_down": cool_down, "seconds": seconds})
    project_file = read_project(folder / PROJECT)
    like = project_in(folder, request=project_file.first)
    upstream = Shared(like.home, settings.seconds)
    with choose_progress() as progress:

        def follow(project: Project, lock: Lock) -> LockCandidate:
            # a host that is silent is waited for once, not for each row
            with with_patience(upstream.patience):
                return newest(project, lock, settings, progress.say, upstream.ask)

        wheel = CycleConfig(
            follow=follow,
            channels=channels(project_file.channel),
            options=options,
            progress=progress,
            bisect=bisect,
            row_ended=lambda: tell_now(like.home, progress.say),
        )
        if dry_run:
            # of what is only shown nothing is worth more patience
            with with_patience(upstream.patience):
                report = look(folder, project_file.rows, like, wheel)
        else:
            report = cycle(folder, project_file.rows, like, wheel)
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        for line in tell(report):
            click.echo(line)
    raise SystemExit(0 if report.ok else 1)
