"""`rocwright why STEP`."""

from __future__ import annotations

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import Selection, not_a_stack, project_options, the_project
from rocwright.cli.place import say


@click.command("why")
@click.argument("step")
@project_options
@json_option
def command(step: str, selection: Selection, as_json: bool) -> None:
    """The inputs of a step's key, and which of them differ from the last time."""
    from rocbase.cli.tell import print_json
    from rocwright.cli.build_report import show_remedies
    from rocwright.flow import current_lock, planned
    from rocwright.plan.decide import differences
    from rocwright.project import last_plan

    not_a_stack(step, "why")
    project = the_project(selection)
    locked = current_lock(project, say)
    show_remedies(locked)
    plan, decisions = planned(project, locked)
    chosen = find_step(step, [decision.step.name for decision in decisions])
    decision = next(entry for entry in decisions if entry.step.name == chosen)
    last = last_plan(project)
    previous = (
        next((candidate for candidate in last.steps if candidate.name == chosen), None) if last else None
    )
    by_key = {entry.key: entry for entry in plan.steps}
    changed = differences(decision.step, previous, by_key) if previous else []
    material = decision.step.action.material()
    if as_json:
        print_json(
            {
                "name": chosen,
                "key": decision.step.key,
                "state": decision.state.value,
                "reasons": decision.reasons,
                "action": material,
                "inputs": [item.model_dump() for item in decision.step.inputs],
                "last_key": previous.key if previous else None,
                "changed": changed,
            }
        )
        return
    click.echo(f"{chosen}   key {decision.step.key}")
    click.echo(f"{decision.state.value}{': ' if decision.reasons else ''}{'; '.join(decision.reasons)}\n")
    click.echo("the key is made from")
    for name, value in material.items():
        for line in _lines(name, value):
            click.echo(f"  {line}")
    for item in decision.step.inputs:
        made_by = by_key[item.key].name if item.key in by_key else "?"
        click.echo(f"  input {item.name:<10} {item.key[:12]}  {made_by}")
    if previous is None:
        click.echo("\nit has not been built before")
    elif changed:
        click.echo("\nchanged since the last time")
        for line in changed:
            click.echo(f"  {line}")
    else:
        click.echo("\nnothing changed since the last time")


def _lines(name: str, value: object) -> list[str]:
    match value:
        case dict():
            return [f"{name} {key} = {entry}" for key, entry in sorted(value.items())]
        case list() if len(value) > 6:
            return [f"{name}: {len(value)} entries"]
        case list() if value and isinstance(value[0], dict):
            return [f"{name}: " + ", ".join(f"{key} {field}" for key, field in row.items()) for row in value]
        case list():
            return [f"{name}: {entry}" for entry in value]
        case _:
            return [f"{name}: {value}"]


def find_step(name: str, names: list[str]) -> str:
    """The step of that name. Raises InputError with the nearest names."""
    from rocwright.catalog.load import lookup

    return lookup("step", name, {entry: entry for entry in names})
