"""Seconds, bytes, counts and texts of strangers, for people."""

from __future__ import annotations

import re

TERMINAL_CODE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]"
)
"""Moves a terminal's cursor, colours it, sets its title or writes to its clipboard (ECMA-48, xterm)."""


def duration(seconds: float) -> str:
    """Seconds for people: 4.2 s, 3 min 20 s, 1 h 02 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"


def size(number: float) -> str:
    """Bytes for people, in binary units."""
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.2f} GiB"


def count(number: int, noun: str) -> str:
    """How many there are of what the noun names: 1 kernel, 2 kernels, 10,211 kernels."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def plain_line(text: str) -> str:
    """Return a stranger's line for a terminal: without its codes, and nothing else that a terminal obeys."""
    return text if text.isprintable() else printable(TERMINAL_CODE.sub("", text), keep="\t")


def printable(text: str, keep: str = "") -> str:
    """The text with nothing in it that a terminal would obey; the characters of `keep` stay."""
    return "".join(one if one.isprintable() or one in keep else "\N{REPLACEMENT CHARACTER}" for one in text)
