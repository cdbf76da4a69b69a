"""What the terminal of the user takes: colours, a line that is written again."""

from __future__ import annotations

import os
import sys


def colours() -> bool:
    """Whether a terminal may get colours: not where NO_COLOR is set (no-color.org) or TERM is dumb."""
    return not os.environ.get("NO_COLOR") and not is_dumb()


def is_dumb() -> bool:
    """Whether the terminal cannot move its cursor, by what TERM says."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


def columns() -> int:
    """How wide what is printed may be: as the terminal of standard output, or as COLUMNS says; 0 for any
    width, where a file or a pipe takes it."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return 0
