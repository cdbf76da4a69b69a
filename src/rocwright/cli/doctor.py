"""`rocwright doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocwright.cli.common import complete, json_option

if TYPE_CHECKING:
    from rocwright.trouble.doctor import Report
    from rocwright.trouble.findings.model import Finding

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan", "ok": "green"}


@click.command("doctor")
@click.argument("stack", required=False, shell_complete=complete("stack"))
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path("/"),
    help="A tree of another machine's /sys, /proc, /dev and /etc, in place of this one.",
)
@json_option
def command(stack: str | None, root: Path, as_json: bool) -> None:
    """Is this machine fit to build STACK, or any, and to run it? What is wrong, why, and what mends it.

    Ends with 12 where something is wrong.
    """
    from rocwright.catalog.load import the_catalog
    from rocwright.cli.tell import print_json
    from rocwright.home import Home
    from rocwright.trouble.doctor import examine, here
    from rocwright.trouble.facts import host_facts
    from rocwright.trouble.machine.tree import Tree

    catalog, facts = the_catalog(), host_facts()
    stacks = [catalog.stack(stack).name] if stack else list(catalog.stacks)
    with Tree(root.absolute()) as tree:
        machine = here(tree, catalog, facts, Home.default(), None)
    report = examine(machine, catalog, facts, stacks)
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        _tell(report)
    if report.worst == "error":
        raise SystemExit(12)


def _tell(report: Report) -> None:
    for finding in report.findings:
        _tell_one(finding, len(report.findings))


def _tell_one(one: Finding, every: int) -> None:
    click.echo(f"{click.style(f'{one.grade:<7}', fg=_COLOURS[one.grade])}  {one.what}")
    if one.grade == "ok":
        return
    for label, text in (("why", one.why), ("mend", one.mend)):
        if text:
            click.echo(f"           {label:<5} {text}")
