"""`rocwright stop NAME`."""

from __future__ import annotations

import click

from rocbase.cli.options import json_option


def complete_server(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion with names of servers."""
    from rocwright.serving import api

    return [server.name for server, _ in api.servers() if server.name.startswith(incomplete)]


@click.command("stop")
@click.argument("names", nargs=-1, metavar="NAME...", shell_complete=complete_server)
@click.option("--all", "every", is_flag=True, help="Stop all of them.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing of names that no server has.")
@json_option
def command(names: tuple[str, ...], every: bool, quiet: bool, as_json: bool) -> None:
    """End a server that was started with rocwright run, and remove what it left."""
    from rocbase.cli.tell import print_json
    from rocwright.serving import api

    existing = [server.name for server, _ in api.servers()]
    chosen = existing if every else [name for name in names if not quiet or name in existing]
    if not names and not every:
        raise click.UsageError("name a server, or use --all; rocwright ps shows them.")
    stopped = [(name, api.stop_server(name)) for name in chosen]
    if as_json:
        print_json([{"name": name, "ran": ran} for name, ran in stopped])
        return
    for name, ran in stopped:
        click.echo(f"stopped: {name}" if ran else f"{name} was not running; removed what it left")
