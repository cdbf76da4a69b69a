"""Known failures by words: looked for in all fields, ranked, with the lines that matched."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rocwright.catalog.issue import Issue

# Lines of an issue that are told.
MOST_LINES = 3

_WORD = re.compile(r"[a-z0-9]+")
_ENDINGS = ("ings", "ing", "ies", "ied", "ed", "es", "s", "y")
# Words that say nothing of what is looked for.
_IDLE = re.compile(
    r"\b(?:an?|and|at|by|can|do|does|for|from|how|i|in|is|it|my|of|on|or|the|to|what|when|while|why|with)\b"
)

# Letters that are left of a word without its ending, and of one that others may begin with.
_SHORTEST = 4


class Field(NamedTuple):
    """A field of an issue: its name, how much a word in it counts, and its text."""

    name: str
    weight: float
    text: str


class IssueMatch(NamedTuple):
    """An issue, how well it fits (more is better), its lines that have the words, as `field: text`, and
    whether it has every word."""

    issue: Issue
    score: float
    lines: tuple[str, ...]
    whole: bool


def search(words: str, issues: Iterable[Issue]) -> list[IssueMatch]:
    """The issues that have most of `words`, the best first; none where no issue has any of them.

    A word counts the more the fewer issues have it, and up to twice where the words are in one line; its
    ending does not count (atomic, atomics), and one that begins with it counts half.
    """
    stems = tuple(dict.fromkeys(_stems(_IDLE.sub(" ", words.lower())))) or tuple(dict.fromkeys(_stems(words)))
    read = [(issue, [(field, {*_stems(field.text)}) for field in _fields(issue)]) for issue in issues]
    having = Counter(word for _, fields in read for word in set().union(*(has for _, has in fields)))
    matches: list[tuple[int, IssueMatch]] = []
    for issue, fields in read:
        scores = [_score(word, fields, len(read), having) for word in stems]
        if any(scores):
            lines = tuple(_lines(stems, fields))[:MOST_LINES]
            together = max(sum(_fits(word, has) for word in stems) for _, has in fields) / len(stems)
            score = round(sum(scores) * (1 + together), 2)
            matches.append((sum(map(bool, scores)), IssueMatch(issue, score, lines, all(scores))))
    highest = max((count for count, _ in matches), default=0)
    best = [match for count, match in matches if count > highest / 2]
    return sorted(best, key=lambda match: (-match.score, match.issue.name))


def _fields(issue: Issue) -> Iterator[Field]:
    yield Field("name", 8, issue.name)
    yield Field("means", 6, issue.means)
    yield Field("where", 5, ", ".join(issue.components))
    yield Field("gpus", 5, ", ".join(issue.targets))
    for line in issue.examples:
        yield Field("looks", 4, line)
    for quote in issue.quotes:
        yield Field("printed", 4, quote.line)
    for line in issue.patterns:
        yield Field("pattern", 3, line)
    yield Field("cause", 3, issue.cause)
    yield Field("remedy", 3, issue.remedy)
    yield Field("class", 2, issue.failure.value)
    for line in (*issue.source, *issue.upstream):
        yield Field("source", 2, line)


def _stems(text: str) -> Iterator[str]:
    for word in _WORD.findall(text.lower()):
        ending = next((suffix for suffix in _ENDINGS if word.endswith(suffix)), "")
        stem = word[: len(word) - len(ending)] if ending else word
        yield stem if len(stem) >= _SHORTEST else word


def _score(word: str, fields: Sequence[tuple[Field, set[str]]], issues: int, having: Counter[str]) -> float:
    rare = math.log(1 + issues / max(having[word], 1))
    return rare * max((field.weight * _fits(word, has) for field, has in fields), default=0)


def _fits(word: str, has: set[str]) -> float:
    if word in has:
        return 1.0
    begins = len(word) >= _SHORTEST and any(stem.startswith(word) for stem in has)
    return 0.5 if begins else 0.0


def _lines(stems: Sequence[str], fields: Sequence[tuple[Field, set[str]]]) -> Iterator[str]:
    """The lines that have most of the words, in the order of the fields."""
    fits = [(sum(_fits(word, has) for word in stems), field) for field, has in fields]
    for count, field in sorted(fits, key=lambda pair: -pair[0]):
        if count:
            yield f"{field.name}: {field.text.strip()}"
