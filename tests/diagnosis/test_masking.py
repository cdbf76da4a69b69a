"""What is taken out of a text before others see it."""

from __future__ import annotations

import pytest

from rocwright.diagnosis.masking import masked

SECRET = "Zm9vOmJhcg-and-more"


@pytest.mark.parametrize(
    "line",
    [
        f"HF_TOKEN={SECRET}",
        f"api-key: {SECRET}",
        f"> Authorization: Bearer {SECRET}",
        f"authorization:basic {SECRET}",
        f"cloning https://me:{SECRET}@example.org/x.git",
    ],
)
def test_what_a_line_itself_calls_a_secret_is_masked(line: str) -> None:
    assert SECRET not in masked(line, ())
    assert "***" in masked(line, ())


def test_a_line_that_only_speaks_of_authorization_stays() -> None:
    line = "error: authorization: the bearer of this was refused"
    assert masked(line, ()) == line


def test_a_value_that_is_known_is_masked_wherever_it_stands() -> None:
    assert masked(f"x{SECRET}y", (SECRET,)) == "x***y"
