"""What verbs share: an option for JSON, and progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    """--json on every verb that reports."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")(function)


def say(text: str) -> None:
    """Progress on standard error."""
    click.echo(text, err=True)
