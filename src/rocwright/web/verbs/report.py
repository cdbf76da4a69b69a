"""`rocwright report`."""

from __future__ import annotations

from pathlib import Path

import click

from rocbase.cli.options import json_option, say
from rocwright.cli.common import complete


@click.command("report")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a self-contained page to this file, for a mailing list or a bug report.",
)
@click.option("--stack", default="", shell_complete=complete("stack"), help="Only this stack.")
@json_option
def command(html: Path | None, stack: str, as_json: bool) -> None:
    """Status of every stack, GPU and base on record: the evidence for each, and what is broken.

    The matrix of `rocwright serve`, without a server.
    """
    from rocbase.cli.tell import print_json, print_table
    from rocbase.errors import InputError, OutOfDiskError
    from rocbase.files.atomic import write_atomic
    from rocwright.failures import as_known
    from rocwright.home import Home
    from rocwright.records.opening import read_records
    from rocwright.records.standings import standing
    from rocwright.web.render import ago

    with read_records(Home.default()) as records:
        cells = records.matrix(stack=stack)
        if html is not None:
            from rocwright.web.report import report

            try:
                write_atomic(html, report(records, stack))
            except OSError as error:
                failure = as_known(error)
                if isinstance(failure, OutOfDiskError):
                    raise failure from error
                raise InputError(
                    f"{html} cannot be written",
                    cause=error.strerror or str(error),
                    next_step="name a file in a folder that you can write to",
                ) from error
            say(f"written to {html}")
    if as_json:
        print_json([cell._asdict() | {"said": cell.said, "standing": standing(cell)} for cell in cells])
    elif html is None:
        rows = [
            (
                cell.stack,
                cell.gpu,
                f"{cell.base} {cell.variant}".strip(),
                standing(cell),
                cell.said,
                ", ".join(cell.channels),
                ago(cell.at),
            )
            for cell in cells
        ]
        print_table(("stack", "gpu", "base", "newest", "shown", "channels", "ago"), rows)
