"""`rocwright rehearse`."""

from __future__ import annotations

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import build_options
from rocwright.execution.options import BuildOptions


def _rows(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from rocwright.catalog.load import the_catalog
    from rocwright.rehearsal.rows import rows_by_name

    return [name for name in rows_by_name(the_catalog()) if name.startswith(incomplete)]


@click.command("rehearse")
@click.argument("row", nargs=-1, shell_complete=_rows)
@click.option("--all", "every", is_flag=True, help="Try every file, instead of a sample.")
@click.option("--seed", default="1", show_default=True, help="Of the samples: the same seed, the same files.")
@click.option("--anew", is_flag=True, help="Ask archives and indexes again for stand-ins and sources.")
@build_options("jobs", "engine")
@json_option
def command(
    row: tuple[str, ...],
    every: bool,
    seed: str,
    anew: bool,
    options: BuildOptions,
    as_json: bool,
) -> None:
    """Try ROWs on bases that can be had here: edits, configuring, compilers, imports. Without ROW: all rows.

    For rows whose base or sources cannot be had. It says what was tried, n of m, on what, and how
    that differs from the row. It is evidence of its own, below "built". Exit code 0: nothing that was
    tried failed; 12: something did.
    """
    from rocbase.cli.tell import print_json
    from rocbase.errors import CheckError
    from rocwright import api
    from rocwright.execution.progress import choose_progress
    from rocwright.rehearsal.text import lines

    rehearsals = api.rehearse(
        *row, every=every, seed=seed, anew=anew, options=options, progress=choose_progress()
    )
    if as_json:
        print_json(
            [
                rehearsal.model_dump(mode="json")
                | {"said": rehearsal.word, "tried": rehearsal.tried, "all": rehearsal.all}
                for rehearsal in rehearsals
            ]
        )
    else:
        for rehearsal in rehearsals:
            for line in lines(rehearsal):
                click.echo(line)
    raise SystemExit(CheckError.failure.exit_code if any(rehearsal.failed for rehearsal in rehearsals) else 0)
