"""What headers ask for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel_samples.tables import each
from rocwright.web.sent import names, span


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
