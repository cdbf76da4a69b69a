"""Seconds, bytes, counts and texts of strangers, for people."""

from __future__ import annotations

import re

TERMINAL_CODE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]"
)
"""Moves a terminal's cursor, colours it, sets its title or writes to its clipboard (ECMA-48, xterm)."""

_STYLE = re.compile(r"(\x1b\[(?:[012]|3[1-6])m)")
"""Styles that verbs use: none of them hides a text or moves the cursor."""

_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


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


def plain_text(text: str) -> str:
    """Return what a program prints of its own and of strangers: lines and its own styles stay.

    A carriage return stays at the begin, where a line is written again.
    """
    if not _OBEYED.search(text):
        return text
    head = "\r" if text.startswith("\r") else ""
    parts = _STYLE.split(text[len(head) :])
    return head + "".join(part if index % 2 else _plain_lines(part) for index, part in enumerate(parts))


def _plain_lines(text: str) -> str:
    return "\n".join(plain_line(line) if _OBEYED.search(line) else line for line in text.split("\n"))


def printable(text: str, keep: str = "") -> str:
    """The text with nothing in it that a terminal would obey; the characters of `keep` stay."""
    return "".join(
        character if character.isprintable() or character in keep else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )
