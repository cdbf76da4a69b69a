"""`rocwright restart NAME`."""

from __future__ import annotations

import click

from rocbase.cli.options import json_option, say
from rocwright.serving.verbs.stop import complete_server


@click.command("restart")
@click.argument("name", shell_complete=complete_server)
@json_option
def command(name: str, as_json: bool) -> None:
    """End a server and start it again with the same command; it is left running, its key stays."""
    from dataclasses import replace

    from rocbase.cli.tell import print_json
    from rocwright.serving import api
    from rocwright.serving.verbs.servers import as_data, show

    running = api.restart_server(name, say=say)
    if as_json:
        print_json(as_data(running.server, runs=True))
    else:
        # the key was shown at its first start
        show(replace(running, key=""), detached=True)
