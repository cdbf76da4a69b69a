"""`rocwright history`."""

from __future__ import annotations

from itertools import islice

import click

from rocwright.cli.common import json_option


@click.command("history")
@click.option("--last", default=20, show_default=True, type=click.IntRange(min=1), help="How many runs.")
@json_option
def command(last: int, as_json: bool) -> None:
    """Earlier runs on this machine, the newest first."""
    from rocwright.build.runs import runs
    from rocwright.cli.tell import print_json, print_table
    from rocwright.home import Home
    from rocwright.units import duration

    found = list(islice(runs(Home.default().runs), last))
    if as_json:
        print_json([run.model_dump(mode="json") for run in found])
        return
    if not found:
        click.echo("nothing has been built yet; begin with: rocwright build llama-vulkan")
        return
    print_table(
        ("when", "stack", "gpu", "base", "outcome", "time", "steps"),
        [
            (
                run.started,
                run.stack,
                ",".join(run.gpu),
                run.base,
                run.outcome,
                duration(run.seconds),
                ", ".join(f"{one.name} {one.outcome}" for one in run.steps),
            )
            for run in found
        ],
        right=(5,),
    )
