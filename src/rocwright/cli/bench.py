"""`rocwright bench`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import Selection, complete, engine_option, project_options, the_project
from rocwright.cli.place import say

if TYPE_CHECKING:
    from rocwright.project import Project


@click.command("bench")
@project_options
@engine_option
@click.option(
    "--runs",
    default=5,
    show_default=True,
    type=click.IntRange(1, 100),
    help="How often each thing is measured, each time in a new process.",
)
@click.option(
    "--model",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A model in GGUF to measure with, instead of the tiny one that rocwright makes.",
)
@click.option(
    "--compare",
    metavar="STACK",
    shell_complete=complete("stack"),
    help="Measure nothing: show the figures on record beside those of this other stack, for the same GPU.",
)
@json_option
def command(
    selection: Selection,
    engine: str | None,
    runs: int,
    model: Path | None,
    compare: str | None,
    as_json: bool,
) -> None:
    """Measure what is built, on whatever device there is, and keep the figures.

    Tokens a second of a model of language (prompt, generation, one user and eight), products of matrices,
    memory, convolutions, and the time until something answers: what is measured is data (docs/bench.md).
    Programs run in the sandbox and the root file system of rocwright verify. A device that is a program is
    called software; an emulated GPU is refused.
    """
    project = the_project(selection)
    if compare is not None:
        _compare(project, compare, as_json)
        return
    from rocbase.cli.tell import print_json, print_table
    from rocwright import api
    from rocwright.execution.progress import choose_progress
    from rocwright.records.model import new_run_id
    from rocwright.verify.bench.text import COLUMNS, rows

    run_id = new_run_id()
    figures = api.bench(
        project, engine=engine, runs=runs, model=model, run_id=run_id, progress=choose_progress(), say=say
    )
    if as_json:
        print_json([figure.model_dump(mode="json") for figure in figures])
        return
    print_table(COLUMNS, rows(figures))
    click.echo(f"\non record  rocwright history {run_id}")


def _compare(project: Project, other_stack: str, as_json: bool) -> None:
    """What is on record of two stacks, side by side. Raises InputError where one has no figures."""
    from rocbase.cli.tell import print_json, print_table
    from rocwright.records.opening import read_records
    from rocwright.verify.bench.on_record import figures_of, side_by_side
    from rocwright.verify.bench.text import COMPARED, compared

    gpu = project.request.gpu[0]
    with read_records(project.home) as records:
        figures, other_figures = (
            figures_of(records, name, gpu) for name in (project.request.stack, other_stack)
        )
    pairs = side_by_side(figures, other_figures)
    if as_json:
        rows = [
            {
                "one": a.model_dump(mode="json"),
                "other": b.model_dump(mode="json"),
                "worse": change.worse,
                "certain": change.certain,
            }
            for a, b, change in pairs
        ]
        print_json(rows)
        return
    print_table((*COMPARED[:2], project.request.stack, other_stack, *COMPARED[4:]), compared(pairs))
