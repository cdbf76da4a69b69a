"""`rocwright logs [STEP|SERVER]`."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import click

from rocbase.cli.options import json_option
from rocbase.terminal import unguarded
from rocbase.units import plain_line


def _names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from rocwright.execution.runs import steps_with_logs
    from rocwright.home import Home

    servers = _servers()
    names = [server.name for server, _ in servers.servers()] if servers else []
    return [name for name in (*names, *steps_with_logs(Home.default())) if name.startswith(incomplete)]


@click.command("logs")
@click.argument("name", required=False, metavar="[STEP|SERVER]", shell_complete=_names)
@click.option("--path", "only_path", is_flag=True, help="Only print the path of the log.")
@click.option("--follow", "-f", is_flag=True, help="Go on with what is added, until Ctrl-C.")
@click.option("--raw", is_flag=True, help="Keep the terminal codes of a step, into a file or pipe only.")
@json_option
def command(name: str | None, only_path: bool, follow: bool, raw: bool, as_json: bool) -> None:
    """The log of a server of that name (rocwright ps), else the newest log of a step.

    Without a name it is that of the newest failure, else of the newest step.
    """
    if follow and as_json:
        raise click.UsageError("--follow goes without --json.")
    if raw and (as_json or sys.stdout.isatty()):
        # a step could set the title, fill the clipboard or hide what it did
        raise click.UsageError("--raw writes into a file or a pipe: rocwright logs STEP --raw > FILE")
    *older, path = _paths(name)
    if as_json:
        _print_json([*older, path], with_lines=not only_path)
        return
    if only_path:
        click.echo(str(path))
        return
    click.echo(f"# {path}", err=True)
    if follow:
        _follow(path, raw=raw)
        return
    for part in (*older, path):
        with part.open(encoding="utf-8", errors="replace", newline="" if raw else None) as file:
            unguarded(sys.stdout).writelines(file) if raw else sys.stdout.writelines(map(_shown, file))


def _paths(name: str | None) -> list[Path]:
    """The files of a log, the newest last."""
    from rocwright.execution.runs import find_log
    from rocwright.home import Home

    servers = _servers()
    served = servers.server_log(name) if servers and name else []
    return served or [find_log(Home.default(), name)]


def _servers() -> Any:
    """Load what knows the logs of servers; None if no package provides it."""
    from rocwright.plugins import load

    return load("rocwright.logs", "servers")


def _shown(text: str) -> str:
    """Return lines as a terminal may have them."""
    return "\n".join(map(plain_line, text.split("\n")))


def _follow(path: Path, *, raw: bool) -> None:
    """Until Ctrl-C; the log of a server also ends with it."""
    from contextlib import suppress

    from rocwright.execution.follow_log import follow

    servers = _servers()
    with suppress(KeyboardInterrupt):
        for text in servers.follow_log(path) if servers else follow(path, lambda: True):
            unguarded(sys.stdout).write(text) if raw else sys.stdout.write(_shown(text))
            sys.stdout.flush()


def _print_json(paths: list[Path], *, with_lines: bool) -> None:
    """The run, the path and the lines with their times; line by line, for a log may be larger than memory."""
    from rocwright.execution.runs import parse_line
    from rocwright.home import Home

    path = paths[-1]
    run = path.parent.name if path.is_relative_to(Home.default().runs) else ""
    head = json.dumps({"run": run, "path": str(path)}, indent=2)
    if not with_lines:
        click.echo(head)
        return
    write = sys.stdout.write
    write(head.removesuffix("\n}") + ',\n  "lines": [')
    with ExitStack() as stack:
        files = [stack.enter_context(file.open("r", encoding="utf-8", errors="replace")) for file in paths]
        for number, line in enumerate(chain.from_iterable(files)):
            time, text = parse_line(line)
            write(f"{',' if number else ''}\n    {json.dumps({'time': time, 'text': text})}")
    write("\n  ]\n}\n")
