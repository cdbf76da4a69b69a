"""A table of facts that is one test: each fact that fails is named."""

from __future__ import annotations

import pytest

from rocwheel_samples.tables import each


@each("number, half", [(2, 1), (3, 1), pytest.param(8, 5, id="eight")])
def halves(number: int, half: int, more: int) -> None:
    assert number == 2 * half + more


def test_every_row_that_fails_is_named_and_no_other() -> None:
    with pytest.raises(AssertionError, match="2 of 3") as caught:
        halves(more=0)
    assert "(3, 1): " in str(caught.value) and "eight: " in str(caught.value)
    assert "(2, 1)" not in str(caught.value)


def test_an_empty_table_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="empty"):
        each("fact", [])(lambda fact: None)()
