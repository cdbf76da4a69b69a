"""What the terminal of the user takes: colours, a line that is written again."""

from __future__ import annotations

import os


def colours() -> bool:
    """Whether a terminal may get colours: not where NO_COLOR is set (no-color.org) or TERM is dumb."""
    return not os.environ.get("NO_COLOR") and not is_dumb()


def is_dumb() -> bool:
    """Whether the terminal cannot move its cursor, by what TERM says."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")
