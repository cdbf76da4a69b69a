"""What the terminal of the user takes: colours, a line that is written again."""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO, cast


class Guarded:
    """A stream of text that strangers' codes do not come through: all else is that of the stream below."""

    def __init__(self, stream: TextIO) -> None:
        self.below = stream

    def write(self, text: str) -> int:
        plain = text
        if not text.replace("\n", "").isprintable():
            from rocbase.units import plain_text  # most of what is printed does without it

            plain = plain_text(text)
        self.below.write(plain)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.below, name)


def guard() -> None:
    """Guard standard output and errors: names, messages and lines of strangers are printed everywhere."""
    sys.stdout = cast("TextIO", Guarded(sys.stdout))
    sys.stderr = cast("TextIO", Guarded(sys.stderr))


def unguarded(stream: TextIO) -> TextIO:
    """Return the stream below a guarded one, for a caller that cleans what it writes."""
    return stream.below if isinstance(stream, Guarded) else stream


def colours() -> bool:
    """Whether a terminal may get colours: not where NO_COLOR is set (no-color.org) or TERM is dumb."""
    return not os.environ.get("NO_COLOR") and not is_dumb()


def is_dumb() -> bool:
    """Whether the terminal cannot move its cursor, by what TERM says."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


def columns() -> int:
    """How wide what is printed may be: as the terminal of standard output, or as COLUMNS says; 0 for any
    width, where a file or a pipe takes it."""
    width = os.environ.get("COLUMNS", "")
    if width.isdecimal() and int(width):
        return int(width)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return 0
