"""Printing: errors as a friend would tell them, tables, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import click

from rocwright.errors import RocwrightError
from rocwright.errors import as_known as as_known


def tell(error: RocwrightError, subject: str = "") -> None:
    """Print an error: class, what, detail, cause, next step."""
    head = click.style(f"error[{error.failure.value}]", fg="red", bold=True)
    click.echo(f"{head} {f'{subject}: ' if subject else ''}{error.what}", err=True)
    for line in error.detail.splitlines():
        click.echo(f"  {line}", err=True)
    known = f"{error.issue}: {error.known}" if error.issue else ""
    told = (("known", known), ("cause", error.cause), *_mends(error), ("next", error.next_step))
    for label, text in told:
        if text:
            click.echo(f"  {click.style(f'{label:<5}', bold=True)}  {text}", err=True)


def _mends(error: RocwrightError) -> tuple[tuple[str, str], ...]:
    """What mends it: by a machine where it can, and by hand."""
    if error.heal:
        return ("fix", f"rocwright build --heal   {error.heal}"), ("or", error.mend)
    return ("fix", error.mend), ("heal", error.no_heal)


def tell_any(error: Exception, *, as_json: bool = False) -> int:
    """Print any failure (also as JSON on standard output, if asked); gives the exit code of its class."""
    told = as_known(error)
    tell(told)
    if as_json:
        print_json({"error": told.as_dict()})
    return told.failure.exit_code


def print_json(data: Any) -> None:
    """Data on standard output as JSON."""
    click.echo(json.dumps(data, indent=2, default=str))


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """Columns as wide as what they hold; `right` columns are aligned to the right."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max((len(row[i]) for row in [list(header), *texts]), default=0) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    click.echo(click.style(line(header), bold=True))
    for row in texts:
        click.echo(line(row))
