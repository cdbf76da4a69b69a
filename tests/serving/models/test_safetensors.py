"""Heads of safetensors files: bounds, places, and that no byte of one can do harm."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocbase.errors import CheckError
from rocwright.serving.models.safetensors import read_safetensors

GOOD: dict[str, Any] = {
    "__metadata__": {"format": "pt"},
    "a": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]},
    "b": {"dtype": "F32", "shape": [], "data_offsets": [12, 16]},
}


def written(path: Path, head: Any, data: int = 16) -> Path:
    said = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(said)) + said + bytes(data))
    return path


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    found = read_safetensors(written(tmp_path / "a.safetensors", GOOD))
    assert (found.weights, found.parameters, found.quantisation) == (16, 7, "F16")


def test_the_missing_bytes_are_told(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="at least 6 bytes are missing"):
        read_safetensors(written(tmp_path / "a.safetensors", GOOD, 10))


def test_a_head_that_is_not_there_is_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", 5000) + b"{")
    with pytest.raises(CheckError, match=r"at least 4,999 bytes .* are missing"):
        read_safetensors(path)


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ([], "no JSON object|not a JSON object"),
        ({"a": {"dtype": "F16", "shape": [2], "data_offsets": [0, 5]}}, "cannot be"),
        ({"a": {"dtype": "F16", "shape": [-2], "data_offsets": [0, 4]}}, "cannot be"),
        ({"a": {"dtype": "F16", "shape": [2], "data_offsets": [4, 8]}}, "does not lie"),
        ({"a": {"dtype": "U8", "shape": [2**62, 2**62], "data_offsets": [0, 4]}}, "cannot be"),
        ({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4, 5]}}, "cannot be"),
        ({"a": {"dtype": "U8", "shape": [True] * 2, "data_offsets": [0, 1]}}, "cannot be"),
        ({"a": 3}, "cannot be"),
        (GOOD | {"c": {"dtype": "U8", "shape": [3], "data_offsets": [10, 13]}}, "does not lie"),
    ],
)
def test_what_cannot_be_is_refused(head: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(CheckError) as refused:
        read_safetensors(written(tmp_path / "a.safetensors", head))
    assert any(one in refused.value.cause for one in says.split("|"))


def test_a_tensor_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    said = b'{"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "a": {}}'
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(said)) + said + b"\0")
    with pytest.raises(CheckError, match="damaged"):
        read_safetensors(path)


def test_bytes_behind_the_last_tensor_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckError) as refused:
        read_safetensors(written(tmp_path / "a.safetensors", GOOD, 20))
    assert "belong to nothing" in refused.value.cause


def test_a_head_longer_than_any_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", 2**40))
    with pytest.raises(CheckError, match="damaged"):
        read_safetensors(path)


def test_a_deeply_nested_head_is_refused(tmp_path: Path) -> None:
    said = b'{"a":' * 200_000
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(said)) + said)
    with pytest.raises(CheckError, match="damaged"):
        read_safetensors(path)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_byte_makes_a_traceback(tmp_path: Path, data: st.DataObject) -> None:
    path = written(tmp_path / "a.safetensors", GOOD)
    bad = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(bad)))
        new = data.draw(st.binary(max_size=8))
        bad[at : at + data.draw(st.integers(0, 8))] = new
    path.write_bytes(bytes(bad))
    try:
        found = read_safetensors(path)
    except CheckError:
        return
    assert 0 <= found.weights <= len(bad)
