"""Texts for others, without the secrets that stand in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import re2

# RE2: its time is linear, whatever a log holds
_SECRET = re2.compile(
    r"(?i)\b([\w.-]*(?:token|secret|passw(?:or)?d|api[_-]?key|credential)[\w.-]*\s*[=:]\s*"
    r"|authorization\s*:\s*(?:bearer|basic)\s+)(\S+)|(://[^/\s:@]*:)([^/\s@]+)(@)"
)


def secrets_of_environment() -> tuple[str, ...]:
    """Values of this process's variables that no page may show."""
    named = re.compile(r"(?i)token|secret|passw|api_?key|credential")
    return tuple(value for name, value in os.environ.items() if named.search(name) and len(value) >= 8)


def masked(text: str, hidden: Iterable[str]) -> str:
    """The text without the values `hidden`, and what a variable, a header or an address calls a secret."""
    for value in hidden:
        text = text.replace(value, "***")
    if _SECRET.search(text):
        text = _SECRET.sub(lambda m: f"{m[1]}***" if m[1] else f"{m[3]}***{m[5]}", text)
    return text
