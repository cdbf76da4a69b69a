"""Text of strangers, made fit for a terminal."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    """The text with nothing in it that a terminal would obey; the characters of `keep` stay."""
    return "".join(one if one.isprintable() or one in keep else "\N{REPLACEMENT CHARACTER}" for one in text)
