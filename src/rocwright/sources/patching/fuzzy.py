"""Hunks applied as patch(1) does: elsewhere than they say (offset), and with less of their context (fuzz).

Source: GNU patch 2.7, "Applying Imperfect Patches": up to two lines of context may be left out at each end.
An edit of a recipe takes no fuzz; here it is told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rocbase.errors import PatchError
from rocwright.sources.patching.diffs import NOWHERE, FileDiff, Hunk, closest, inside, places

MOST_FUZZ = 2
# Lines that are looked at for one file of a patch; real ones need some thousand for each hunk.
MOST_WORK = 100_000_000


class HunkState(StrEnum):
    """What a hunk meets in a file."""

    APPLIES = "applies"
    THERE = "applied already"
    FAILS = "fails"


@dataclass(frozen=True, slots=True, kw_only=True)
class HunkOutcome:
    """A hunk of a file: its number in the patch's part for it and the line (from 1) that it names; `line` is
    where it stands now (0: nowhere), `offset` how many lines further down that is than the patch and the
    hunks before it say, `fuzz` how many lines of context were left out."""

    number: int
    hunk: Hunk
    state: HunkState
    line: int = 0
    offset: int = 0
    fuzz: int = 0


def reversed_diff(diff: FileDiff) -> FileDiff:
    """The diff that takes this one back."""
    hunks = [replace(hunk, before=hunk.after, after=hunk.before) for hunk in diff.hunks]
    return FileDiff(diff.new, diff.old, hunks, diff.executable)


def apply_fuzzy(diff: FileDiff, text: str | None) -> tuple[str | None, list[HunkOutcome]]:
    """A file (None: there is none) after the hunks that apply, and what each met.

    Raises PatchError for more hunks than anybody writes for a file of that length.
    """
    if text is None and diff.old != NOWHERE:
        verdict = HunkState.THERE if diff.new == NOWHERE else HunkState.FAILS
        return None, [HunkOutcome(number=n, hunk=hunk, state=verdict) for n, hunk in enumerate(diff.hunks, 1)]
    if diff.old == NOWHERE:
        return _created(diff, text)
    # a form feed or a Unicode separator ends no line here
    lines = re.findall(r"[^\n]*\n|[^\n]+$", text or "")
    outcomes: list[HunkOutcome] = []
    offset = floor = 0
    budget = MOST_WORK
    for number, hunk in enumerate(diff.hunks, 1):
        budget -= len(lines) * (MOST_FUZZ + 2)
        expected = hunk.start - (1 if hunk.before else 0) + offset
        if budget < 0:
            raise _too_much(diff, len(lines))
        placement = _place(lines, hunk, expected, floor)
        if placement is None:
            outcomes.append(HunkOutcome(number=number, hunk=hunk, state=HunkState.FAILS))
            continue
        start, fuzz, top, bottom, present = placement
        old_lines, new_lines = _cut(hunk.before, top, bottom), _cut(hunk.after, top, bottom)
        state = HunkState.THERE if present else HunkState.APPLIES
        if not present:
            lines[start : start + len(old_lines)] = new_lines
        grown = 0 if present else len(new_lines) - len(old_lines)
        floor = start + len(new_lines)
        moved = start - top - expected
        offset += moved + grown
        outcomes.append(
            HunkOutcome(number=number, hunk=hunk, state=state, line=start + 1, offset=moved, fuzz=fuzz)
        )
    result = "".join(lines)
    return None if diff.new == NOWHERE and not result else result, outcomes


def _too_much(diff: FileDiff, lines: int) -> PatchError:
    return PatchError(
        f"it has {len(diff.hunks):,} hunks for {diff.name}, a file of {lines:,} lines",
        cause="that would take minutes to judge, and no patch that people write has so many",
        next_step="check where the patch came from; split it if it is right",
        subject=diff.name,
    )


def _created(diff: FileDiff, text: str | None) -> tuple[str | None, list[HunkOutcome]]:
    content = "".join(line for hunk in diff.hunks for line in hunk.after)
    state = HunkState.FAILS
    if text is None or text == content:
        state = HunkState.APPLIES if text is None else HunkState.THERE
    outcomes = [HunkOutcome(number=n, hunk=hunk, state=state) for n, hunk in enumerate(diff.hunks, 1)]
    return (content if text is None else text), outcomes


def _place(
    lines: Sequence[str], hunk: Hunk, expected: int, floor: int
) -> tuple[int, int, int, int, bool] | None:
    """Where a hunk stands: line from 0, fuzz, lines of context left out above and below, and whether it is
    there already."""
    old_places, new_places = (
        places(lines, hunk.before, floor),
        places(lines, hunk.after, floor) if hunk.after else [],
    )
    # a pure addition to a text that has it already matches both ways
    if new_places and (not old_places or inside(old_places, new_places, hunk)):
        return closest(new_places, expected), 0, 0, 0, True
    leading, trailing = _context(hunk)
    for fuzz in range(MOST_FUZZ + 1):
        # the longer context gives way first, as in patch(1)
        top = max(0, fuzz + leading - max(leading, trailing))
        bottom = max(0, fuzz + trailing - max(leading, trailing))
        if fuzz > max(leading, trailing):
            return None
        block = _cut(hunk.before, top, bottom)
        candidates = old_places if fuzz == 0 else places(lines, block, floor)
        if candidates and (block or fuzz == 0):
            return closest(candidates, expected + top), fuzz, top, bottom, False
    return None


def _cut(lines: Sequence[str], top: int, bottom: int) -> Sequence[str]:
    return lines[top : len(lines) - bottom]


def _context(hunk: Hunk) -> tuple[int, int]:
    """How many lines at the beginning and at the end of a hunk are the same before and after."""
    shorter = min(len(hunk.before), len(hunk.after))
    leading = next((n for n in range(shorter) if hunk.before[n] != hunk.after[n]), shorter)
    remaining = shorter - leading
    trailing = next((n for n in range(remaining) if hunk.before[-1 - n] != hunk.after[-1 - n]), remaining)
    return leading, trailing
