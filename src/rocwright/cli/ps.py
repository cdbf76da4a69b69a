"""`rocwright ps`."""

from __future__ import annotations

import click

from rocbase.cli.options import json_option


@click.command("ps")
@json_option
def command(as_json: bool) -> None:
    """The servers that were started with rocwright run, and whether they run."""
    from rocbase.cli.tell import print_json
    from rocwright import api
    from rocwright.cli.servers import as_data

    found = api.servers()
    if as_json:
        print_json([as_data(server, runs=runs) for server, runs in found])
        return
    if not found:
        click.echo("no server was started here; rocwright run starts one")
        return
    rows = [
        (
            one.name,
            "running" if runs else "ended",
            one.url,
            f"{one.component} {one.version}",
            one.on,
            one.begun,
        )
        for one, runs in found
    ]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip())
