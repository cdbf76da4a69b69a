from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rocbase.units import count, plain_line, printable


@given(st.text())
def test_nothing_is_left_that_a_terminal_obeys_and_nothing_else_goes(text: str) -> None:
    found = printable(text)
    assert found.isprintable()
    assert len(found) == len(text)
    assert all(one in (was, "\N{REPLACEMENT CHARACTER}") for one, was in zip(found, text, strict=True))


def test_plain_text_stays_and_what_is_kept_does() -> None:
    assert (
        printable("grüße\x1b[31m\tx\n")
        == "grüße\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}x\N{REPLACEMENT CHARACTER}"
    )
    assert printable("a\tb\n", keep="\t") == "a\tb\N{REPLACEMENT CHARACTER}"


@given(st.text())
def test_a_line_for_a_terminal_has_nothing_that_it_obeys(text: str) -> None:
    assert plain_line(text).replace("\t", "").isprintable()


def test_codes_of_a_terminal_go_whole() -> None:
    hostile = "\x1b]0;title\x07a\x1b]52;c;ZXZpbA==\x07b\x1b[2Jc\x1b[31mred\x1b[0m\t\r\x9b2J"
    assert plain_line(hostile) == "abcred\t\N{REPLACEMENT CHARACTER}2J"


def test_one_is_told_apart_from_none_and_from_many() -> None:
    assert [count(number, "kernel") for number in (0, 1, 2, 10_211)] == [
        "0 kernels",
        "1 kernel",
        "2 kernels",
        "10,211 kernels",
    ]
