"""What headers ask for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.wheels.index.http import chosen, names, span
from rocwheel.wheels.index.pages import HTML, JSON
from rocwheel_samples.tables import each

OFFERED = ("text/html", HTML, JSON)


@each(
    ("accept", "kind"),
    [
        ("", "text/html"),
        ("*/*", "text/html"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html"),
        (f"{JSON}, {HTML}; q=0.1, text/html; q=0.01", JSON),  # pip
        (f"{JSON}, {HTML};q=0.2, text/html;q=0.01", JSON),  # uv
        (f"{HTML};q=0.2, text/html;q=0.1", HTML),
        ("application/*", HTML),
        (f"application/*;q=0.5, {JSON}", JSON),
        (f"*/*, {JSON};q=0, text/html;q=0", HTML),
        ("image/png", None),
        ("text/html;q=0", None),
        ("nonsense", "text/html"),
    ],
)
def test_the_form_that_is_wanted_most_is_chosen(accept: str, kind: str | None) -> None:
    assert chosen(accept, OFFERED) == kind


@given(st.text(alphabet="texhml/*;q=0.1,+- ", max_size=60))
def test_any_accept_header_gives_a_form_or_none(accept: str) -> None:
    assert chosen(accept, OFFERED) in (*OFFERED, None)


@each(
    ("header", "part"),
    [
        ("", None),
        ("bytes=0-99", (0, 100)),
        ("bytes=0-0", (0, 1)),
        ("bytes=40-", (40, 100)),
        ("bytes=-10", (90, 100)),
        ("bytes=-1000", (0, 100)),
        ("bytes=99-1000", (99, 100)),
        ("bytes=10-5", None),
        ("bytes=-", None),
        ("bytes=0-1,5-6", None),
        ("lines=0-1", None),
        ("bytes=0x10-", None),
        ("bytes=\N{ARABIC-INDIC DIGIT ONE}-", None),
    ],
)
def test_a_range_is_cut_to_the_file(header: str, part: tuple[int, int] | None) -> None:
    assert span(header, 100) == part


@each("header", ["bytes=100-", "bytes=100-200", "bytes=-0"])
def test_a_range_outside_of_the_file_is_none(header: str) -> None:
    with pytest.raises(ValueError, match="bytes"):
        span(header, 100)


@given(st.integers(0, 10**19), st.integers(0, 10**19), st.integers(0, 10**12))
def test_a_range_never_leaves_the_file(first: int, last: int, size: int) -> None:
    for header in (f"bytes={first}-{last}", f"bytes={first}-", f"bytes=-{last}"):
        try:
            part = span(header, size)
        except ValueError:
            continue
        assert part is None or 0 <= part[0] < part[1] <= size


def test_entity_tags_are_compared_weakly() -> None:
    assert names('"a", W/"b"', '"b"')
    assert names("*", '"b"')
    assert not names('"a"', '"b"')
    assert not names("", '"b"')
