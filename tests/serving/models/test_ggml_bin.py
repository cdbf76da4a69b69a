"""Heads of whisper.cpp's models: what they say, and that no byte of one can do harm."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocbase.errors import CheckError
from rocwright.catalog.model_files import model_facts
from rocwright.serving.models.ggml_bin import read_ggml_bin
from rocwright.verify.tiny_whisper import write_tiny_whisper

FACTS = model_facts()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whisper") / "tiny.bin"
    write_tiny_whisper(path)
    return path


def test_the_tiny_model_is_read_whole(tiny: Path) -> None:
    found = read_ggml_bin(tiny, FACTS)
    assert (found.architecture, found.quantisation, found.layers) == ("whisper", "Q8_0", 4)
    assert 0 < found.weights < tiny.stat().st_size


@pytest.mark.parametrize("missing", [1, 64, 1_000_000, 5_211_000])
def test_a_truncated_model_is_refused(tiny: Path, tmp_path: Path, missing: int) -> None:
    cut = tmp_path / "cut.bin"
    cut.write_bytes(tiny.read_bytes()[:-missing])
    with pytest.raises(CheckError, match="is cut short: at least"):
        read_ggml_bin(cut, FACTS)


def test_sizes_that_cannot_be_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.bin"
    path.write_bytes(b"lmgg" + struct.pack("<11i", *[2**30] * 11))
    with pytest.raises(CheckError, match="damaged"):
        read_ggml_bin(path, FACTS)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.timeout(120)
def test_no_byte_makes_a_traceback(tiny: Path, tmp_path: Path, data: st.DataObject) -> None:
    bad = bytearray(tiny.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.one_of(st.integers(0, 100), st.integers(0, len(bad))))
        new = data.draw(st.one_of(st.binary(min_size=1, max_size=8), st.just(b"\xff" * 8)))
        bad[at : at + len(new)] = new
    path = tmp_path / "bad.bin"
    path.write_bytes(bytes(bad))
    with contextlib.suppress(CheckError):
        read_ggml_bin(path, FACTS)
