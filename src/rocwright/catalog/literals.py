"""Texts of which a line must have one so that a pattern can match: looked for before the pattern is tried."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

# Characters of a text that is worth looking for.
SHORTEST = 3

# Characters from which on a text is rare: fewer texts are better than longer ones then.
_ENOUGH = 6

# Texts that a sequence, and characters that a class, is written out to.
_MOST_PRODUCT, _MOST_CLASS = 8, 3

_PLAIN = r"[^\\()|*+?{}\[\].^$]"
_TOKEN = re.compile(
    r"\(\?P<\w+>|\(\?[a-zA-Z-]*:|\(\?[a-zA-Z-]+\)|[()|]"
    r"|(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??"
    r"|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]"
    rf"|\\x[0-9a-fA-F]{{2}}|\\.|{_PLAIN}+(?![*+?{{])|.",
    re.DOTALL,
)
_FOLDS = re.compile(r"\(\?[a-zA-Z-]*i")
_CLASS = re.compile(r"\[((?:[^\\\]^-]|\\[^a-zA-Z0-9])+)\]")
_SPECIAL, _OFTEN = frozenset("([.\\^$"), ("*", "+", "?", "{")
_EMPTY = {"^", "$", r"\b", r"\B", r"\A", r"\z"}
_ESCAPED = {r"\t": "\t", r"\n": "\n", r"\r": "\r", r"\f": "\f", r"\v": "\v", r"\a": "\a"}


class Literals(NamedTuple):
    """Texts, one of which each match has; with `folds` in any case of letters, and they are small."""

    texts: frozenset[bytes]
    folds: bool


class _Part(NamedTuple):
    """A part of a pattern: all texts that it is, where they are few, and texts of which it has one."""

    exact: frozenset[str] | None
    has: frozenset[str] | None


_ANYTHING = _Part(None, None)
_NOTHING = _Part(frozenset({""}), None)


@lru_cache(maxsize=8192)
def literals(pattern: str) -> Literals | None:
    """The texts to look for before a pattern that RE2 reads is tried; None where none is long enough."""
    folds = _FOLDS.search(pattern) is not None
    tokens = [*_TOKEN.findall(pattern), ""]
    has = _choice(tokens, [0]).has
    if has is None or (folds and not all(text.isascii() for text in has)):
        return None
    texts = (text.encode("latin-1") for text in _fewest(has))
    return Literals(frozenset(text.lower() if folds else text for text in texts), folds)


def _choice(tokens: Sequence[str], cursor: list[int]) -> _Part:
    """What stands up to the end of a group; `cursor` is where, and moves on."""
    parts = [_sequence(tokens, cursor)]
    while tokens[cursor[0]] == "|":
        cursor[0] += 1
        parts.append(_sequence(tokens, cursor))
    if len(parts) == 1:
        return parts[0]
    exact = [part.exact for part in parts if part.exact is not None]
    has = [part.has for part in parts if part.has is not None]
    return _Part(
        frozenset().union(*exact) if len(exact) == len(parts) else None,
        frozenset().union(*has) if len(has) == len(parts) else None,
    )


def _sequence(tokens: Sequence[str], cursor: list[int]) -> _Part:
    run, complete, candidates = frozenset({""}), True, list[frozenset[str] | None]()
    while (token := tokens[cursor[0]]) not in {"", "|", ")"}:
        if token[0] not in _SPECIAL and not tokens[cursor[0] + 1].startswith(_OFTEN):
            # most of a pattern is plain text
            cursor[0] += 1
            run = frozenset([text + token for text in run])
            continue
        for part in _repeated(tokens, cursor):
            joined = _joined(run, part.exact)
            if joined is None:
                complete = False
                candidates += [run, part.has]
            run = joined or part.exact or frozenset({""})
    return _Part(run if complete else None, _best([*candidates, run]))


def _joined(run: frozenset[str], exact: frozenset[str] | None) -> frozenset[str] | None:
    """Each text of one before each of the other; None where these are too many."""
    if exact is None or len(run) * len(exact) > max(_MOST_PRODUCT, len(run), len(exact)):
        return None
    return frozenset(a + b for a, b in product(run, exact))


def _repeated(tokens: Sequence[str], cursor: list[int]) -> tuple[_Part, ...]:
    """A part with how often it may stand there."""
    part = _next_part(tokens, cursor)
    often = tokens[cursor[0]]
    if not often.startswith(_OFTEN) or often == "{":
        return (part,)
    cursor[0] += 1
    if often.startswith("?") and part.exact is not None:
        return (_Part(part.exact | {""}, None),)
    return (_ANYTHING,) if often.startswith(("?", "*", "{0")) else (part, _ANYTHING)


def _next_part(tokens: Sequence[str], cursor: list[int]) -> _Part:
    token = tokens[cursor[0]]
    cursor[0] += 1
    if token[0] not in _SPECIAL:
        return _exactly([token])
    if token.startswith("(") and not (token.startswith("(?") and token.endswith(")")):
        part = _choice(tokens, cursor)
        cursor[0] += 1
        return part
    if token in _EMPTY or token.startswith("("):
        return _NOTHING
    if token.startswith("[") and (chosen := _CLASS.fullmatch(token)):
        members = re.sub(r"\\(.)", r"\1", chosen[1])
        return _exactly(members) if len(members) <= _MOST_CLASS else _ANYTHING
    if token.startswith((".", "[")):
        return _ANYTHING
    return _escaped(token)


def _escaped(token: str) -> _Part:
    if token.startswith(r"\x"):
        return _exactly([chr(int(token[2:], 16))]) if len(token) == 4 else _ANYTHING
    if token in _ESCAPED:
        return _exactly([_ESCAPED[token]])
    return _ANYTHING if token[1].isalnum() else _exactly([token[1]])


def _exactly(texts: Iterable[str]) -> _Part:
    exact = frozenset(texts)
    return _Part(exact, exact if min(map(len, exact)) >= SHORTEST else None)


def _best(candidates: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    """Those of which the shortest is long, and few; None where a text is too short in all of them."""
    fit = [texts for texts in candidates if texts and len(min(texts, key=len)) >= SHORTEST]
    if len(fit) < 2:
        return fit[0] if fit else None
    sizes = [len(min(texts, key=len)) for texts in fit]
    ranks = [(min(size, _ENOUGH), -len(texts), size) for size, texts in zip(sizes, fit, strict=True)]
    return fit[ranks.index(max(ranks))]


def _fewest(texts: frozenset[str]) -> frozenset[str]:
    """Without those that have another in them."""
    if not 1 < len(texts) <= 2 * _MOST_PRODUCT:
        return texts
    return frozenset(text for text in texts if not any(shorter in text for shorter in texts - {text}))
