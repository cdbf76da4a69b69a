"""`rocwright exec-step`: the local runner and a cluster run this same command."""

from __future__ import annotations

from pathlib import Path

import click

from rocwright.cli.common import build_options
from rocwright.execution.options import StepOptions


@click.command("exec-step")
@click.argument("key")
@click.option("--store", "url", required=True, help="The store's URL: file:///...")
@click.option("--jobs", default=1, type=click.IntRange(min=1), help="Processes at once.")
@click.option("--memory", type=click.IntRange(min=1), help="Most memory in bytes.")
@build_options(table=StepOptions)
@click.option(
    "--job-server",
    "server",
    type=click.Path(path_type=Path),
    help="The folder of a build's job server, which limits the number of processes.",
)
@click.option(
    "--shard", "shards", multiple=True, help="The key of a shard of it; one that is missing is done without."
)
@click.option(
    "--report", type=click.Path(path_type=Path), help="Write the record, or the error, here as JSON."
)
def command(
    key: str,
    url: str,
    jobs: int,
    memory: int | None,
    options: StepOptions,
    server: Path | None,
    shards: tuple[str, ...],
    report: Path | None,
) -> None:
    """Run one step from the store alone; its outputs are added to the store if they are missing."""
    from rocwright.execution.step_process import Asked, run, run_step

    request = Asked(
        key=key,
        store=url,
        jobs=jobs,
        memory=memory,
        options=options,
        server=str(server) if server else None,
        shards=shards,
        report=str(report) if report else None,
    )
    if report is not None:
        from rocbase.processes.parent import die_with_parent

        die_with_parent()
        raise SystemExit(run(request))
    for output in run_step(request).outputs:
        click.echo(f"{output.sha256}  {output.size}  {output.filename}")
