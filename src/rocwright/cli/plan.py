"""`rocwright plan`."""

from __future__ import annotations

from pathlib import Path

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import Selection, project_options, the_project
from rocwright.cli.place import say


@click.command("plan")
@project_options
@click.option(
    "--graph", type=click.Path(path_type=Path, dir_okay=False), help="Draw the plan as this SVG file."
)
@json_option
def command(selection: Selection, graph: Path | None, as_json: bool) -> None:
    """What a build would run, what is in the store, and for each step that would run: why."""
    from rocbase.cli.tell import print_json, print_table
    from rocbase.files.atomic import write_atomic
    from rocbase.units import count
    from rocwright import api
    from rocwright.cli.build_report import show_lock_line, show_needs
    from rocwright.execution.estimate import expected
    from rocwright.plan.decide import State
    from rocwright.plan.graph import svg

    project = the_project(selection)
    locked = api.lock(project, network=False, say=say)
    show_lock_line(locked)
    decisions = api.plan(project, locked)
    if graph is not None:
        title = f"{project.request.stack} · {', '.join(project.request.gpu)} · {project.request.base}"
        write_atomic(graph, svg(decisions, title))
        say(f"drawn into {graph}")
    if as_json:
        times = expected(project, decisions)
        print_json(
            [
                {
                    "name": decision.step.name,
                    "kind": decision.step.kind,
                    "key": decision.step.key,
                    "state": decision.state.value,
                    "reasons": decision.reasons,
                    "resources": decision.step.resources.model_dump(),
                    "expected": times[decision.step.name].model_dump(),
                    "inputs": [item.model_dump() for item in decision.step.inputs],
                }
                for decision in decisions
            ]
        )
        return
    print_table(
        ("step", "key", "state", "why"),
        [
            (decision.step.name, decision.step.key[:12], decision.state.value, "; ".join(decision.reasons))
            for decision in decisions
        ],
    )
    running = sum(decision.state is State.RUN for decision in decisions)
    click.echo(f"\n{count(len(decisions), 'step')}, {f'{running} to run' if running else 'nothing to do'}")
    show_needs(project, decisions)
