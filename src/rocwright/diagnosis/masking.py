"""Texts for others, without the secrets that stand in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import re2

# RE2: its time is linear, whatever a log holds
_SECRET = re2.compile(
    r"(?i)\b([\w.-]*(?:token|secret|passw(?:or)?d|api[_-]?key|credential)[\w.-]*(?:\\?[\"'])?\s*[=:]\s*"
    r"|authorization(?:\\?[\"'])?\s*:\s*(?:\\?[\"'])?(?:bearer|basic)\s+)"
    r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|\S+)|(://[^/\s:@]*:)([^/\s@]+)(@)"
)

# Logs of language models count tokens and name tokenizers: `n_tokens = 11,`, `tokenizer='gpt2'`.
# A number of 8 digits may be a secret, as in `secrets_of_environment`.
_OTHER_SECRET = re2.compile(r"(?i)secret|passw|api[_-]?key|credential|authorization")
_TOKENIZER = re2.compile(r"(?i)tokeni[sz](?:er|ation)")
_COUNT = re2.compile(r"(?i)[\[({'\"]*(?:-?\d{1,7}(?:[.,/]\d{1,7})*|true|false|none|null)?[\])}'\",;.]*")


def secrets_of_environment() -> tuple[str, ...]:
    """Values of this process's variables that no page may show."""
    named = re.compile(r"(?i)token|secret|passw|api_?key|credential")
    return tuple(value for name, value in os.environ.items() if named.search(name) and len(value) >= 8)


def masked(text: str, hidden: Iterable[str]) -> str:
    """The text without the values `hidden`, and what a variable, a header or an address calls a secret."""
    for value in hidden:
        text = text.replace(value, "***")
    return _SECRET.sub(_mask, text) if _SECRET.search(text) else text


def _mask(match: re.Match[str]) -> str:
    if match[1] is None:
        return f"{match[3]}***{match[5]}"
    return match[0] if tells_of_tokens(match[1], match[2]) else f"{match[1]}***"


def tells_of_tokens(name: str, value: str) -> bool:
    """Tell whether `name = value` counts tokens or names a tokenizer, and holds no secret."""
    if _OTHER_SECRET.search(name):
        return False
    return bool(_COUNT.fullmatch(value)) or "token" not in _TOKENIZER.sub("", name).lower()
