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
from rocwright.patching.diffs import NOWHERE, FileDiff, Hunk, closest, inside, places

MOST_FUZZ = 2
MOST_WORK = 100_000_000
"""Lines that are looked at for one file of a patch; real ones need some thousand for each hunk."""


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
    hunks = [replace(one, before=one.after, after=one.before) for one in diff.hunks]
    return FileDiff(diff.new, diff.old, hunks, diff.executable)


def apply_fuzzy(diff: FileDiff, text: str | None) -> tuple[str | None, list[HunkOutcome]]:
    """A file (None: there is none) after the hunks that apply, and what each met.

    Raises PatchError for more hunks than anybody writes for a file of that length.
    """
    if text is None and diff.old != NOWHERE:
        gone = HunkState.THERE if diff.new == NOWHERE else HunkState.FAILS
        return None, [HunkOutcome(number=n, hunk=one, state=gone) for n, one in enumerate(diff.hunks, 1)]
    if diff.old == NOWHERE:
        return _created(diff, text)
    # a form feed or a Unicode separator ends no line here
    lines = re.findall(r"[^\n]*\n|[^\n]+$", text or "")
    outcomes: list[HunkOutcome] = []
    offset = floor = 0
    left = MOST_WORK
    for number, hunk in enumerate(diff.hunks, 1):
        left -= len(lines) * (MOST_FUZZ + 2)
        expected = hunk.start - (1 if hunk.before else 0) + offset
        if left < 0:
            raise _too_much(diff, len(lines))
        found = _place(lines, hunk, expected, floor)
        if found is None:
            outcomes.append(HunkOutcome(number=number, hunk=hunk, state=HunkState.FAILS))
            continue
        at, fuzz, top, bottom, there = found
        before, after = _cut(hunk.before, top, bottom), _cut(hunk.after, top, bottom)
        state = HunkState.THERE if there else HunkState.APPLIES
        if not there:
            lines[at : at + len(before)] = after
        grown = 0 if there else len(after) - len(before)
        floor = at + len(after)
        moved = at - top - expected
        offset += moved + grown
        outcomes.append(
            HunkOutcome(number=number, hunk=hunk, state=state, line=at + 1, offset=moved, fuzz=fuzz)
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
    made = "".join(line for hunk in diff.hunks for line in hunk.after)
    state = HunkState.FAILS
    if text is None or text == made:
        state = HunkState.APPLIES if text is None else HunkState.THERE
    outcomes = [HunkOutcome(number=n, hunk=one, state=state) for n, one in enumerate(diff.hunks, 1)]
    return (made if text is None else text), outcomes


def _place(
    lines: Sequence[str], hunk: Hunk, expected: int, floor: int
) -> tuple[int, int, int, int, bool] | None:
    """Where a hunk stands: line from 0, fuzz, lines of context left out above and below, and whether it is
    there already."""
    before, after = places(lines, hunk.before, floor), places(lines, hunk.after, floor) if hunk.after else []
    # a pure addition to a text that has it already matches both ways
    if after and (not before or inside(before, after, hunk)):
        return closest(after, expected), 0, 0, 0, True
    above, below = _context(hunk)
    for fuzz in range(MOST_FUZZ + 1):
        # the longer context gives way first, as in patch(1)
        top = max(0, fuzz + above - max(above, below))
        bottom = max(0, fuzz + below - max(above, below))
        if fuzz > max(above, below):
            return None
        wanted = _cut(hunk.before, top, bottom)
        found = before if fuzz == 0 else places(lines, wanted, floor)
        if found and (wanted or fuzz == 0):
            return closest(found, expected + top), fuzz, top, bottom, False
    return None


def _cut(lines: Sequence[str], top: int, bottom: int) -> Sequence[str]:
    return lines[top : len(lines) - bottom]


def _context(hunk: Hunk) -> tuple[int, int]:
    """How many lines at the beginning and at the end of a hunk are the same before and after."""
    least = min(len(hunk.before), len(hunk.after))
    above = next((n for n in range(least) if hunk.before[n] != hunk.after[n]), least)
    rest = least - above
    below = next((n for n in range(rest) if hunk.before[-1 - n] != hunk.after[-1 - n]), rest)
    return above, below
