"""Addresses that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.errors import InputError
from rocbase.http.address import checked, is_same_server, split
from rocwheel_samples.tables import each

WRONG = ["http://[", "http://]/", "//[1.2]", "http://here:port/", "http://here:70000/", "s3://\u2100/x"]


@each("url", WRONG)
def test_what_is_none_is_told(url: str) -> None:
    with pytest.raises(ValueError):
        checked(url)
    with pytest.raises(InputError, match="is not an address") as caught:
        split(url)
    assert caught.value.cause and caught.value.next_step


def test_no_secret_is_told() -> None:
    with pytest.raises(InputError) as caught:
        split("https://me:secret@here:port/x?key=secret#secret")
    assert "secret" not in str(caught.value.as_dict())
    assert caught.value.message == "'https://here:port/x' is not an address"


@given(st.text(alphabet="htps3:/[]@?#.0a\t\u2100", max_size=30))
def test_whatever_is_given_it_is_parts_or_our_error(url: str) -> None:
    try:
        parts = split(url)
    except InputError as error:
        assert len(error.message) < 120
    else:
        assert parts.port is None or parts.port < 65536


@each(
    ("url", "same"),
    [
        ("https://me:secret@here/x", True),
        ("https://here/y?z", True),
        ("http://here/x", False),
        ("https://here:8443/x", False),
        ("https://here.example/x", False),
        ("https://here@there/x", False),
    ],
)
def test_a_secret_goes_to_the_same_scheme_host_and_port_alone(url: str, same: bool) -> None:
    assert is_same_server(url, "https://me@here/") is same
