"""`rocwright ps`."""

from __future__ import annotations

import click

from rocbase.cli.options import json_option


@click.command("ps")
@json_option
def command(as_json: bool) -> None:
    """The servers that were started with rocwright run, and whether they run."""
    from rocbase.cli.tell import print_json
    from rocwright.serving import api
    from rocwright.serving.verbs.servers import as_data

    servers = api.servers()
    if as_json:
        print_json([as_data(server, runs=runs) for server, runs in servers])
        return
    if not servers:
        click.echo("no server was started here; rocwright run starts one")
        return
    rows = [
        (
            server.name,
            "running" if runs else "ended",
            server.url,
            f"{server.component} {server.version}",
            server.on,
            server.begun,
        )
        for server, runs in servers
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip())
