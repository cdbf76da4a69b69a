"""`rocwright stop NAME`."""

from __future__ import annotations

import click

from rocwheel.cli.common import json_option


def complete_server(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion with names of servers."""
    from rocwright import api

    return [one.name for one, _ in api.servers() if one.name.startswith(incomplete)]


@click.command("stop")
@click.argument("names", nargs=-1, metavar="NAME...", shell_complete=complete_server)
@click.option("--all", "every", is_flag=True, help="Stop all of them.")
@json_option
def command(names: tuple[str, ...], every: bool, as_json: bool) -> None:
    """End a server that was started with rocwright run, and remove what it left."""
    from rocwheel.cli.tell import print_json
    from rocwright import api
    from rocwright.cli.servers import as_data

    chosen = [one.name for one, _ in api.servers()] if every else list(names)
    if not chosen and not every:
        raise click.UsageError("name a server, or use --all; rocwright ps shows them.")
    stopped = [api.stop_server(name) for name in chosen]
    if as_json:
        print_json([as_data(server, runs=False) | {"ran": ran} for server, ran in stopped])
        return
    for server, ran in stopped:
        click.echo(
            f"stopped: {server.name}" if ran else f"{server.name} had ended already; removed what it left"
        )
