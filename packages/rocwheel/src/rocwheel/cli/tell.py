"""Printing: errors as a friend would tell them, tables, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import click

from rocwheel.errors import RocwheelError


def tell(error: RocwheelError, subject: str = "", more: Sequence[tuple[str, str]] = ()) -> None:
    """Print an error: class, what, detail, cause, `more` rows of a label and a text, next step."""
    head = click.style(f"error[{error.failure.value}]", fg="red", bold=True)
    click.echo(f"{head} {f'{subject}: ' if subject else ''}{error.message}", err=True)
    for line in error.detail.splitlines():
        click.echo(f"  {line}", err=True)
    known = f"{error.issue}: {error.known_issue}" if error.issue else ""
    for label, text in (("known", known), ("cause", error.cause), *more, ("next", error.next_step)):
        if text:
            click.echo(f"  {click.style(f'{label:<5}', bold=True)}  {text}", err=True)


def tell_any(error: RocwheelError, more: Sequence[tuple[str, str]] = (), *, as_json: bool = False) -> int:
    """Print an error, as JSON on standard output too if asked; gives the exit code of its class."""
    tell(error, more=more)
    if as_json:
        print_json({"error": error.as_dict()})
    return error.failure.exit_code


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
