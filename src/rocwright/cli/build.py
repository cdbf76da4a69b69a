"""`rocwright build`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import (
    Asked,
    complete_executor,
    engine_option,
    jobs_option,
    memory_option,
    no_compiler_cache_option,
    no_resume_option,
    project_options,
    tells_changes,
    the_project,
)
from rocwright.cli.place import say

if TYPE_CHECKING:
    from rocwright.plan.decide import Decision
    from rocwright.resolve.model import Lock


@click.command("build")
@project_options
@jobs_option
@click.option(
    "--memory",
    metavar="SIZE",
    callback=memory_option,
    help="Memory limit of the whole build, such as 12GiB. [default: what the machine has]",
)
@click.option(
    "--no-job-server",
    "sharing",
    flag_value=False,
    default=True,
    help="Give each step a fixed number of jobs, and never pause a process.",
)
@no_compiler_cache_option
@no_resume_option
@engine_option
@click.option(
    "--executor",
    metavar="NAME",
    default="local",
    shell_complete=complete_executor,
    help="What runs the steps: local, dask or slurm (see rocwright farm), or one of another package.",
)
@click.option(
    "--shards",
    type=click.IntRange(min=1),
    help="Compile large steps in so many parts, each a step of its own; 1 for none.  [default: as many as "
    "dask or slurm has machines]",
)
@click.option("--verify", "verify_too", is_flag=True, help="Run the checks and smoke tests afterwards.")
@click.option(
    "--keep-stopped",
    is_flag=True,
    help="Keep the build folder of a step that was stopped because the disk was full.",
)
@click.option(
    "--discard", is_flag=True, help="Discard unsaved changes in trees that were opened with rocwright shell."
)
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
    asked: Asked,
    jobs: int | None,
    memory: int | None,
    sharing: bool,
    compiler_cache: bool,
    resume: bool,
    engine: str | None,
    executor: str,
    shards: int | None,
    verify_too: bool,
    discard: bool,
    keep_stopped: bool,
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
    from rocwright.cli.report import as_data, show_failures, show_needs, show_plan_line, show_summary
    from rocwright.execution.progress import choose_progress

    project = the_project(asked)

    def show(locked: Lock, decisions: list[Decision]) -> None:
        show_plan_line(locked, decisions)
        show_needs(project, decisions, jobs, memory)

    built = api.build(
        project,
        jobs=jobs,
        memory=memory,
        engine=engine,
        executor=executor,
        shards=shards,
        sharing=sharing,
        compiler_cache=compiler_cache,
        resume=resume,
        discard=discard,
        keep_stopped=keep_stopped,
        heal=heal,
        verify=verify_too,
        run_id=run_id,
        origin=origin,
        planned=show,
        progress=choose_progress(),
        say=say,
    )
    if as_json:
        from rocwright.remedies.trail import as_data as trail

        remedies = {"remedies": trail(built.lock)} if built.lock.remedies else {}
        print_json(as_data(project, built) | remedies)
    elif not built.failures:
        show_summary(project, built)
    if built.failures:
        new = partial(api.new_lines, built.run.id, home=project.home.path)
        raise SystemExit(show_failures(built.failures, new))
    if any(not one.ok for one in built.findings):
        raise SystemExit(CheckError.failure.exit_code)
