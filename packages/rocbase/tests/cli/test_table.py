"""Tables in terminals of any width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.cli.table import lines, wrapped

ROWS = [
    ("stable-diffusion-vulkan", "gfx1151", "debian:experimental", "ran on an emulated GPU"),
    ("pytorch", "gfx803, gfx1103", "debian:sid", "checked without a GPU"),
]


def test_a_name_with_joints_is_broken_at_one_before_a_word_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert list(lines(("stack", "gpu", "base", "seen"), ROWS)) == [
        "stack                    gpu      base              seen",
        "stable-diffusion-vulkan  gfx1151  debian:           ran on",
        "                                  experimental      an",
        "                                                    emulated",
        "                                                    GPU",
        "pytorch                  gfx803,  debian:sid        checked",
        "                         gfx1103                    without",
        "                                                    a GPU",
    ]


@given(cell=st.from_regex(r"[a-z:/, -]{0,60}", fullmatch=True), width=st.integers(6, 40))
def test_what_is_wrapped_says_the_same_within_its_width(cell: str, width: int) -> None:
    told = wrapped(cell, width)
    assert max(map(len, told)) <= max(width, 1)
    assert "".join("".join(told).split()) == "".join(cell.split())
