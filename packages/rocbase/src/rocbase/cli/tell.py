"""Printing: errors as a friend would tell them, tables, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import PurePath
from typing import Any

import click

from rocbase.cli.table import BROKEN, lines, wrapped
from rocbase.errors import ExplainedError, FailureClass
from rocbase.terminal import columns
from rocbase.units import printable

PIECES = 10_000
"""Of JSON, objects that hold no others, names and what is between them, that are printed at once."""

_HOLDING = (dict, list, tuple)


def tell(error: ExplainedError, subject: str = "", extra: Sequence[tuple[str, str]] = ()) -> None:
    """Print an error: class, what, detail, cause, `extra` rows of a label and a text, next step."""
    head = click.style(f"error[{error.failure.value}]", fg="red", bold=True)
    click.echo(f"{head} {f'{subject}: ' if subject else ''}{error.message}", err=True)
    for line in error.detail.splitlines():
        click.echo(f"  {line}", err=True)
    known_issue = f"{error.issue}: {error.known_issue}" if error.issue else ""
    printed: list[str] = []
    rows = (
        ("in", _subject_file(error)),
        ("known", known_issue),
        ("cause", error.cause),
        *extra,
        ("next", error.next_step),
    )
    for label, text in rows:
        if text and text not in printed:
            printed.append(text)  # what mends it is often the next step too
            click.echo(f"  {click.style(f'{label:<5}', bold=True)}  {text}", err=True)


def _subject_file(error: ExplainedError) -> str:
    """The file in which a check found something, where nothing else of the error names it."""
    texts = (error.message, error.cause, error.detail, error.next_step)
    named = PurePath(error.subject).name
    if error.failure is not FailureClass.CHECK or not named or any(named in text for text in texts):
        return ""
    return printable(error.subject)


def tell_any(error: ExplainedError, extra: Sequence[tuple[str, str]] = (), *, as_json: bool = False) -> int:
    """Print an error, as JSON on standard output too if asked; gives the exit code of its class."""
    tell(error, extra=extra)
    if as_json:
        print_json({"error": error.as_dict()})
    return error.failure.exit_code


def print_json(data: Any) -> None:
    """Data on standard output as JSON."""
    pieces = _json(data, "\n")
    # a part at a time: of hundreds of thousands of code objects the text takes more memory than all else
    while text := "".join(islice(pieces, PIECES)):
        click.echo(text, nl=False)
    click.echo()


def _json(data: Any, newline: str) -> Iterator[str]:
    """What json.dumps(data, indent=2) gives, in half its time: it has no fast way for text with indents.

    `newline` is what a line at this depth begins with.
    """
    inner = f"{newline}  "
    if isinstance(data, dict) and any(map(_is_full, data.values())):
        between = "{"
        for name, value in data.items():
            # a dict, as names may be numbers
            yield f"{between}{inner}{_encoder(inner)({name: None})[1:-5]}"
            yield from _json(value, inner)
            between = ","
        yield f"{newline}}}"
    elif isinstance(data, list | tuple) and any(map(_is_full, data)):
        between = "["
        for value in data:
            yield f"{between}{inner}"
            yield from _json(value, inner)
            between = ","
        yield f"{newline}]"
    else:
        text = _encoder(inner)(data)
        yield f"{text[0]}{inner}{text[1:-1]}{newline}{text[-1]}" if _is_full(data) else text


def _is_full(data: Any) -> bool:
    return isinstance(data, _HOLDING) and bool(data)


@cache
def _encoder(newline: str) -> Callable[[Any], str]:
    """Gives the JSON of what holds nothing that holds more, each item on a line."""
    return json.JSONEncoder(default=str, separators=(f",{newline}", ": ")).encode


def print_rows(rows: Iterable[tuple[str, str]], *, indent: str = "", width: int = 0) -> None:
    """Labels, in bold, and texts beside them, which are wrapped in a terminal. A label that is said twice in
    a row is shown once; `width` is that of the labels, where it is not their own."""
    pairs = list(rows)
    width = width or max((len(label) for label, _ in pairs), default=0)
    previous = None
    for label, text in pairs:
        room = columns() - len(indent) - width - 2
        shown = "" if label == previous else label
        for number, line in enumerate(wrapped(text, room) if room >= BROKEN else [text]):
            head = click.style(f"{shown if number == 0 else '':<{width}}", bold=True)
            click.echo(f"{indent}{head}  {line}".rstrip())
        previous = label


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """Columns as wide as what they hold; `right` columns are aligned to the right.

    In a terminal that is too narrow the widest cells take several lines.
    """
    head, *body = lines(header, rows, right)
    click.echo(click.style(head, bold=True))
    for line in body:
        click.echo(line)
