"""Printing: errors as a friend would tell them, tables, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import Any

import click

from rocwheel.errors import RocwheelError
from rocwheel.terminal import columns

LONGEST_WORD = 24
"""Columns up to which a word is not broken in a narrow terminal."""


BROKEN = 6
"""Columns that a cell keeps where words must be broken all the same."""


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


def print_rows(rows: Iterable[tuple[str, str]], *, indent: str = "", width: int = 0) -> None:
    """Labels, in bold, and texts beside them, which are wrapped in a terminal. A label that is said twice in
    a row is shown once; `width` is that of the labels, where it is not their own."""
    told = list(rows)
    width = width or max((len(label) for label, _ in told), default=0)
    before = None
    for label, text in told:
        room = columns() - len(indent) - width - 2
        shown = "" if label == before else label
        for number, line in enumerate(_wrapped(text, room) if room >= BROKEN else [text]):
            head = click.style(f"{shown if number == 0 else '':<{width}}", bold=True)
            click.echo(f"{indent}{head}  {line}".rstrip())
        before = label


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """Columns as wide as what they hold; `right` columns are aligned to the right.

    In a terminal that is too narrow the widest cells take several lines.
    """
    texts = [[str(cell) for cell in row] for row in rows]
    natural = [max((len(row[i]) for row in [list(header), *texts]), default=0) for i in range(len(header))]
    least = [
        natural[i] if i in right else _least([header[i], *(row[i] for row in texts)])
        for i in range(len(header))
    ]
    # what a row is called stays whole, as long as any other word can be broken
    broken = [*least[:1], *(min(one, BROKEN) for one in least[1:])]
    widths = _narrowed(_narrowed(natural, least, columns()), broken, columns())

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    click.echo(click.style(line(header), bold=True))
    for row in texts:
        wrapped = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        for cells in zip_longest(*wrapped, fillvalue=""):
            click.echo(line(cells))


def _narrowed(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths that fit into so many columns of a terminal (0: any number), the widest narrowed first, and
    none below its `least`."""
    widths = list(natural)
    while room and sum(widths) + 2 * (len(widths) - 1) > room:
        able = [i for i, width in enumerate(widths) if width > least[i]]
        if not able:
            break
        widths[max(able, key=lambda i: widths[i])] -= 1
    return widths


def _least(cells: Iterable[str]) -> int:
    """How narrow a column may become: as its longest word."""
    return max((min(len(word), LONGEST_WORD) for cell in cells for word in cell.split()), default=0)


def _wrapped(cell: str, width: int) -> list[str]:
    return wrap(cell, width, break_on_hyphens=False) if len(cell) > width else [cell]
