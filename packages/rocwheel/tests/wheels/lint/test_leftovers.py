"""What building machines leave behind is found wherever a file is cut, and secrets stay secret."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rocwheel.wheels.lint.leftovers import Leftover, LeftoverSearch, the_leftovers
from rocwheel.wheels.lint.model import Grade

RULES = {rule.name: rule for rule in the_leftovers().leftovers}


def found(data: bytes, *cuts: int) -> dict[str, str]:
    search = LeftoverSearch("x.so")
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for begin, end in pairwise(places):
        search.feed(data[begin:end])
    return {one.kind: one.what for one in search.findings()}


@pytest.mark.parametrize("name", RULES)
@given(before=st.binary(max_size=40), cuts=st.lists(st.integers(0, 5000), max_size=4))
def test_it_is_found_wherever_the_pieces_are_cut(name: str, before: bytes, cuts: list[int]) -> None:
    example = RULES[name].examples[0].encode()
    data = before + b"\0" + example + b"\0" + bytes(1500)
    assert name in found(data, *cuts)
    assert found(data, *cuts) == found(data)


def test_a_secret_is_an_error_and_is_not_shown() -> None:
    search = LeftoverSearch("x.so")
    search.feed(b"\0AKIAIOSFODNN7EXAMPLE\0")
    (one,) = search.findings()
    assert one.grade is Grade.ERROR
    assert "IOSFODNN7" not in one.what and "once" in one.what and "not shown" in one.what


def test_a_folder_is_a_note_with_examples() -> None:
    told = found(b"".join(b"/home/alice/torch/%d.cpp\0" % number for number in range(9)))
    assert "9 times" in told["home folder"] and "/home/alice/torch/0.cpp" in told["home folder"]


def test_what_only_looks_like_it_is_passed_over() -> None:
    assert (
        found(b"XAKIAIOSFODNN7EXAMPLE https://user:password@example.org/ -----BEGIN PRIVATE KEY-----\0") == {}
    )


def test_a_rule_whose_example_it_does_not_match_is_refused() -> None:
    with pytest.raises(ValidationError, match="does not match"):
        Leftover.model_validate(RULES["PyPI token"].model_dump() | {"examples": ("nothing",)})
    with pytest.raises(ValidationError, match="the pattern matches"):
        Leftover.model_validate(RULES["home folder"].model_dump() | {"no_match": ("/home/alice/x",)})
