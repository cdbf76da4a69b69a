"""PCIe atomics as a configuration space tells of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwright.diagnosis.machine.gpus import requester


def space(enabled: bool, at: int = 0x58) -> bytes:
    """A configuration space with power management and then PCI Express among its capabilities."""
    data = bytearray(256)
    data[0x34] = 0x48
    data[0x48:0x4A] = bytes((0x01, at))
    data[at : at + 2] = bytes((0x10, 0))
    data[at + 0x28] = 0x40 if enabled else 0
    return bytes(data)


@pytest.mark.parametrize(("enabled", "told"), [(True, "yes"), (False, "no")])
def test_the_bit_of_device_control_2_tells(enabled: bool, told: str) -> None:
    assert requester(space(enabled)) == told


def test_the_64_bytes_that_a_user_is_shown_tell_nothing() -> None:
    assert requester(space(True)[:64]) == "unknown"


def test_a_list_that_goes_round_ends() -> None:
    data = bytearray(space(True))
    data[0x49], data[0x58] = 0x48, 0
    assert requester(bytes(data)) == "unknown"


@given(st.binary(max_size=300))
def test_any_bytes_have_an_answer(data: bytes) -> None:
    assert requester(data) in ("yes", "no", "unknown")
