"""`rocwright ps`."""

from __future__ import annotations

import click

from rocbase.cli.options import json_option


@click.command("ps")
@json_option
def command(as_json: bool) -> None:
    """Servers that were started with rocwright run: state, address, model and device."""
    from pathlib import Path

    from rocbase.cli.tell import print_json, print_table
    from rocwright.catalog.server import GPU
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
            Path(server.model).name,
            f"{server.component} {server.version}",
            f"{server.on} {' '.join(server.gpu)}" if server.on == GPU else server.on,
            server.begun,
        )
        for server, runs in servers
    ]
    print_table(("name", "state", "address", "model", "program", "device", "started"), rows)
