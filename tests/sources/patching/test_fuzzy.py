"""Hunks with offset and fuzz: what is said is what patch(1) does with the same file."""

from __future__ import annotations

import difflib
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocbase.errors import PatchError
from rocwright.sources.patching.diffs import parse_diff
from rocwright.sources.patching.fuzzy import HunkState, apply_fuzzy, reversed_diff

LINES = [f"line {number}\n" for number in range(40)]


def diff_of(before: list[str], after: list[str]) -> str:
    return "".join(difflib.unified_diff(before, after, "a/f", "b/f"))


def changed(at: int, text: str = "changed\n") -> list[str]:
    return [*LINES[:at], text, *LINES[at + 1 :]]


def gnu(folder: Path, text: str, patch: str) -> tuple[bool, str]:
    """Whether patch(1) takes all of it, and the file then."""
    (folder / "f").write_text(text)
    words = ["patch", "--batch", "--forward", "--fuzz=2", "--no-backup-if-mismatch", "-p1", "--reject-file=-"]
    done = subprocess.run([*words, "-d", folder], input=patch, text=True, capture_output=True, check=False)
    return done.returncode == 0, (folder / "f").read_text()


def test_offset_and_fuzz_are_told() -> None:
    (diff,) = parse_diff(diff_of(LINES, changed(20)), "x")
    moved = ["new\n"] * 5 + LINES
    _, (one,) = apply_fuzzy(diff, "".join(moved))
    assert (one.state, one.offset, one.fuzz, one.line) == (HunkState.APPLIES, 5, 0, 23)
    moved[5 + 17] = "other\n"
    text, (one,) = apply_fuzzy(diff, "".join(moved))
    assert (one.offset, one.fuzz) == (5, 1)
    assert text == "".join([*moved[:25], "changed\n", *moved[26:]])


def test_what_is_there_already_is_told_apart_from_what_fails() -> None:
    (diff,) = parse_diff(diff_of(LINES, changed(20)), "x")
    assert apply_fuzzy(diff, "".join(changed(20)))[1][0].state is HunkState.THERE
    text, (one,) = apply_fuzzy(diff, "".join(changed(20, "third\n")))
    assert one.state is HunkState.FAILS
    assert text == "".join(changed(20, "third\n"))


def test_a_patch_is_taken_back() -> None:
    (diff,) = parse_diff(diff_of(LINES, changed(3)), "x")
    assert apply_fuzzy(reversed_diff(diff), "".join(changed(3)))[0] == "".join(LINES)


def test_more_hunks_than_people_write_are_refused_at_once() -> None:
    hunk = "@@ -1,1 +1,1 @@\n-a\n+b\n"
    (diff,) = parse_diff("--- a/f\n+++ b/f\n" + hunk * 2000, "x")
    with pytest.raises(PatchError, match="2,000 hunks"):
        apply_fuzzy(diff, "c\n" * 20_000)


CHANGED = st.lists(st.tuples(st.integers(0, 39), st.sampled_from(["x\n", "y\n", ""])), min_size=1, max_size=4)
DRIFTED = st.lists(st.tuples(st.integers(0, 39), st.sampled_from(["p\n", "q\nr\n", ""])), max_size=4)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=CHANGED, drift=DRIFTED)
def test_patch_itself_agrees(
    tmp_path: Path, edits: list[tuple[int, str]], drift: list[tuple[int, str]]
) -> None:
    after, tree = list(LINES), list(LINES)
    for at, text in edits:
        after[at] = text
    for at, text in drift:
        tree[at] = text
    patch = diff_of(LINES, "".join(after).splitlines(keepends=True))
    (diff,) = parse_diff(patch, "x")
    made, hunks = apply_fuzzy(diff, "".join(tree))
    if any(one.state is HunkState.THERE for one in hunks):
        return
    took, result = gnu(tmp_path, "".join(tree), patch)
    assert took == all(one.state is HunkState.APPLIES for one in hunks)
    assert not took or made == result
