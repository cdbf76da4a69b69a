"""`rocwright shell STEP`."""

from __future__ import annotations

import click

from rocwright.cli.common import Selection, engine_option, not_a_stack, project_options, the_project
from rocwright.cli.place import say


@click.command("shell")
@click.argument("step")
@project_options
@engine_option
@click.option("--command", "-c", "script", help="Run this in the sandbox instead of an interactive shell.")
def command(
    step: str,
    selection: Selection,
    engine: str | None,
    script: str | None,
) -> None:
    """Open a shell in the sandbox of a failed or finished step: its root, its tree, its environment.

    After a failure the tree is as the failure left it; otherwise it is unpacked again. Your changes in it
    stay until you save them (rocwright patch save) or discard them (rocwright build --discard).
    """
    from rocbase.errors import InputError
    from rocwright.cli.why import find_step
    from rocwright.execution.inspect import open_shell
    from rocwright.flow import current_lock, planned

    not_a_stack(step, "shell")
    project = the_project(selection)
    plan, _ = planned(project, current_lock(project, say))
    runnable = [entry.name for entry in plan.steps if entry.kind == "run"]
    if step in {entry.name for entry in plan.steps} - set(runnable):
        raise InputError(
            f"{step} does not run in a sandbox",
            cause="only steps that run a recipe's commands have one",
            next_step=f"rocwright shell {runnable[0]}",
        )
    chosen = find_step(step, runnable)
    chosen_step = next(entry for entry in plan.steps if entry.name == chosen)
    raise SystemExit(open_shell(chosen_step, project.store, project.home, engine, script, say))
