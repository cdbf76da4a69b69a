"""Listings written by hand, compared whole and in pieces of every size."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.wheels.audit import listing
from rocwheel.wheels.audit.facts import Concern, Flow, Rule
from rocwheel.wheels.audit.listing import Comparison
from rocwheel_samples.tables import each

FLOW = Flow(branches="s_c?branch", leaves=("s_setpc_", "s_swappc_"))
RARE = Concern(name="rare", text="", rule=Rule(code=("v_rare",), operands="offset:-", what="rare"))
HEAD = b"\ncode:\tfile format elf64-amdgpu\n\nDisassembly of section .text:\n"


def line(address: int, text: str, words: str = "BF800000") -> bytes:
    return f"\t{text:<58} // {address:012X}: {words}\n".encode()


def header(address: int, name: str) -> bytes:
    return f"\n{address:016x} <{name}>:\n".encode()


def compared(ours: bytes, theirs: bytes, *starts: int) -> Comparison:
    comparison = Comparison([(start, f"f{start}") for start in starts], [RARE], FLOW)
    comparison.read(io.BytesIO(ours), io.BytesIO(theirs))
    return comparison


def test_the_same_text_has_no_differences_and_counts_its_instructions() -> None:
    text = (
        HEAD + header(16, "a") + line(16, "s_nop 0") + line(20, "s_endpgm") + header(24, "b") + line(24, "x")
    )
    found = compared(text, text, 16, 24)
    assert [(one.instructions, one.differing, one.listed) for one in found.functions[1:]] == [
        (2, 0, True),
        (1, 0, True),
    ]
    assert found.functions[0].undecoded == 0


def test_a_difference_is_told_where_it_is_and_ends_with_its_function() -> None:
    ours = HEAD + header(16, "a") + line(16, "s_old 0") + header(20, "b") + line(20, "s_nop 0")
    found = compared(ours, ours.replace(b"s_old 0", b"s_new 1"), 16, 20)
    first, second = found.functions[1:]
    assert (first.differing, second.differing) == (1, 0)
    (example,) = first.examples
    assert (example.address, example.code, example.on) == (16, "s_old 0", "s_new 1")


def test_instructions_of_other_lengths_are_brought_together_by_their_addresses() -> None:
    ours = HEAD + header(16, "a") + line(16, "long", "1 2") + line(24, "s_nop 0")
    theirs = HEAD + header(16, "a") + line(16, "short", "1") + line(20, "short", "2") + line(24, "s_nop 0")
    (_, one) = compared(ours, theirs, 16).functions
    assert (one.instructions, one.differing) == (2, 2)


def test_a_listing_that_ends_early_differs_in_all_that_it_lacks() -> None:
    ours = HEAD + header(16, "a") + b"".join(line(at, "s_nop 0") for at in range(16, 56, 4))
    (_, one) = compared(ours, ours[: ours.index(b"000028")], 16).functions
    assert one.differing >= 4


def test_words_and_lines_that_are_no_instructions_are_counted() -> None:
    text = HEAD + header(16, "a") + line(16, ".long 0xffffffff") + b"  20: 00 00\n" + line(24, "s_endpgm")
    (_, one) = compared(text, text, 16).functions
    assert one.undecoded == 2


@each(("offset", "leaves"), [("0000", False), ("FFFE", False), ("0001", True), ("FFFD", True)])
def test_a_branch_leaves_where_its_target_is_another_functions(offset: str, leaves: bool) -> None:
    text = HEAD + header(16, "a") + line(16, "s_nop 0") + line(20, "s_cbranch_scc0 1", f"BF84{offset}")
    text += line(24, "s_endpgm") + header(28, "b") + line(28, "s_endpgm")
    assert compared(text, text, 16, 28).functions[1].leaves is leaves


def test_instructions_are_looked_for_with_their_operands_on_one_line() -> None:
    text = HEAD + header(16, "a") + line(16, "v_rare v0") + line(20, "v_b v1 offset:-4")
    text += header(24, "b") + line(24, "v_rare v0 offset:-4")
    assert [one.concerns for one in compared(text, text, 16, 24).functions[1:]] == [set(), {0}]


def test_what_stands_before_any_function_is_kept_apart() -> None:
    text = (
        HEAD + header(8, ".text") + line(8, "s_swappc_b64 s[0:1], s[2:3]") + header(16, "a") + line(16, "x")
    )
    before, one = compared(text, text, 16).functions
    assert (before.instructions, before.leaves, one.leaves) == (1, True, False)


DATA = "   10: 00 00 00 00\n"

functions = st.lists(
    st.lists(st.sampled_from(["s_nop 0", "v_rare v0 offset:-4", ".long 0xffff", "s_setpc_b64 s[0:1]", DATA])),
    min_size=1,
    max_size=6,
)


@given(functions, st.integers(1, 4000), st.data())
def test_the_size_of_the_pieces_changes_nothing(
    parts: list[list[str]], block: int, data: st.DataObject
) -> None:
    starts, text, at = [], HEAD, 16
    for number, part in enumerate(parts):
        starts.append(at)
        text += header(at, f"f{number}")
        for one in part:
            text += line(at, one) if one != DATA else DATA.encode()
            at += 4 if one != DATA else 0
        text += line(at, "s_nop 0")
        at += 4
    other = text
    for start, end in pairwise([*starts, at]):
        if data.draw(st.booleans()):
            where = data.draw(st.integers(start // 4, end // 4 - 1)) * 4
            other = other.replace(line(where, "s_nop 0"), line(where, "s_other"))
    whole = compared(text, other, *starts).functions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "BLOCK", block)
        assert compared(text, other, *starts).functions == whole
