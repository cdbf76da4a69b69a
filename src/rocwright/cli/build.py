"""`rocwright build`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import Selection, build_options, project_options, tells_changes, the_project
from rocwright.cli.place import say
from rocwright.execution.options import BuildOptions

if TYPE_CHECKING:
    from rocwright.plan.decide import Decision
    from rocwright.plan.resolve.model import Lock


@click.command("build")
@project_options
@build_options()
@click.option("--verify", "verify_too", is_flag=True, help="Run the checks and smoke tests afterwards.")
@click.option(
    "--heal",
    is_flag=True,
    help="Repair known failures during the build, and record in the lock what helped.",
)
@click.option("--run-id", default="", hidden=True, help="The id under which the run is already on record.")
@click.option("--origin", default="", hidden=True, help="What started the build, if it was not a person.")
@json_option
@tells_changes
def command(
    selection: Selection,
    options: BuildOptions,
    verify_too: bool,
    heal: bool,
    run_id: str,
    origin: str,
    as_json: bool,
) -> None:
    """Build everything in the lock that is not in the store yet.

    With a STACK no project file is needed. Finished steps are kept: the same command continues from there.
    With --heal, a known failure that can be repaired automatically is repaired, and the build continues.
    """
    from rocbase.cli.tell import print_json
    from rocbase.errors import CheckError
    from rocwright import api
    from rocwright.cli.build_report import as_data, show_failures, show_needs, show_plan_line, show_summary
    from rocwright.execution.progress import choose_progress

    project = the_project(selection)

    def show(locked: Lock, decisions: list[Decision]) -> None:
        show_plan_line(locked, decisions)
        show_needs(project, decisions, options.jobs, options.memory)

    built = api.build(
        project,
        options=options,
        heal=heal,
        verify=verify_too,
        run_id=run_id,
        origin=origin,
        planned=show,
        progress=choose_progress(),
        say=say,
    )
    if as_json:
        from rocwright.doctor.remedies.trail import as_data as trail

        remedies = {"remedies": trail(built.lock)} if built.lock.remedies else {}
        print_json(as_data(project, built) | remedies)
    elif not built.failures:
        show_summary(project, built)
    if built.failures:
        new = partial(api.new_lines, built.run.id, home=project.home.path)
        raise SystemExit(show_failures(built.failures, new))
    if any(not finding.ok for finding in built.findings):
        raise SystemExit(CheckError.failure.exit_code)
