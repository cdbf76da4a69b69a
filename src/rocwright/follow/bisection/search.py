"""The smallest set of changes that fails together, by as few answers as can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from math import ceil, log2


class TrialAnswer(StrEnum):
    """What trying a set of changes told; `skip` where it cannot be told (it does not even get that far)."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """`blocks` are the changes that are needed together for the failure, by number.

    A block of one change is a culprit; one of several holds a culprit that no answer told from the others.
    """

    blocks: tuple[frozenset[int], ...]

    @property
    def changes(self) -> frozenset[int]:
        return frozenset().union(*self.blocks)

    @property
    def certain(self) -> bool:
        return all(len(block) == 1 for block in self.blocks)


def smallest(count: int, ask: Callable[[frozenset[int]], TrialAnswer]) -> SearchResult:
    """Find what fails among the changes 0 to `count` - 1, of which none is good and all are bad together.

    The changes are taken as an order: the first prefix that fails ends with a culprit. It is tried alone;
    where it does not fail alone, it is held, and the changes before it are searched in the same way.
    One culprit costs at most ceil(log2(count)) + 1 answers, two at most 9 where `count` is 12.
    """
    blocks: list[frozenset[int]] = []
    remaining = count
    while remaining:
        culprits: frozenset[int] = frozenset().union(*blocks)
        # with what is held, no more changes are good (asked for already), and the first `left` are bad
        start, end = _first_bad(remaining, partial(_with, culprits, ask))
        blocks.append(frozenset(range(start, end)))
        culprits |= blocks[-1]
        if start == 0 or ask(culprits) is TrialAnswer.BAD:
            break
        remaining = start
    return SearchResult(blocks=tuple(blocks))


def _with(culprits: frozenset[int], ask: Callable[[frozenset[int]], TrialAnswer], size: int) -> TrialAnswer:
    return ask(culprits | frozenset(range(size)))


def _first_bad(size: int, ask: Callable[[int], TrialAnswer]) -> tuple[int, int]:
    """The changes (from, to) that make the difference between the longest good prefix known and the
    shortest bad one; more than one where answers between them could not be had."""
    good, bad = 0, size
    silent: set[int] = set()
    while candidates := set(range(good + 1, bad)) - silent:
        wish = _split(good, bad)
        middle = min(candidates, key=lambda candidate: abs(candidate - wish))
        match ask(middle):
            case TrialAnswer.GOOD:
                good = middle
            case TrialAnswer.BAD:
                bad = middle
            case TrialAnswer.SKIP:
                silent.add(middle)
    return good, bad


# Up to so many changes the best split is worked out; beyond it the middle is near enough.
EXACT = 64


def _split(good: int, bad: int) -> int:
    """The prefix to ask for next, so that the worst case of all that may follow is least."""
    if bad - good > EXACT:
        return (good + bad) // 2
    return min(_splits(good, bad), key=lambda split: max(_worst(good, split), _worst(split, bad)))


@cache
def _worst(good: int, bad: int) -> int:
    """Answers needed in the worst case, where one culprit or two are at fault."""
    if bad - good == 1:
        return _answers_after(good)
    return 1 + min(max(_worst(good, split), _worst(split, bad)) for split in _splits(good, bad))


def _splits(good: int, bad: int) -> range:
    """Where a range can be parted so that no leaf lies deeper than halving would put it."""
    half = 1 << ceil(log2(bad - good)) - 1
    return range(max(good + 1, bad - half), min(bad, good + half + 1))


def _answers_after(preceding: int) -> int:
    """Answers after a culprit is known that has `preceding` changes before it: is it alone, and if not, the
    other's place, and whether the two are all."""
    return 1 + ceil(log2(preceding)) + (preceding > 1) if preceding else 0
