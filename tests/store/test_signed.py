"""The word of a signer as it lies in a store: packed where it is large, and never more than it may be."""

from __future__ import annotations

import contextlib
import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.sharers import Machine

from rocwright.store.bucket import Bucket
from rocwright.store.contents import read_contents
from rocwright.store.shared_check import check
from rocwright.store.signed import GZIP, LARGEST, RefusedError, envelope_of, unpacked, word_of

TEXT = "torch = 'sha256'\n" * 20_000


@pytest.fixture
def lab(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "lab", "lab")


def test_a_large_word_is_packed_and_read_as_it_was_said(lab: Machine) -> None:
    small, large = (envelope_of("lock", "d" * 64, text, lab.signer) for text in ("a lock", TEXT))
    assert not small.startswith(GZIP)
    assert large.startswith(GZIP)
    assert len(large) < len(TEXT) / 10
    assert word_of(large, "lock", "d" * 64, [lab.key.key]).content == TEXT
    assert word_of(small, "lock", "d" * 64, [lab.key.key]).content == "a lock"
    # the same said twice is the same bytes
    signed = "2026-11-24T00:00:00Z"
    assert len({envelope_of("lock", "d" * 64, TEXT, lab.signer, signed) for _ in range(2)}) == 1


def test_what_would_unpack_to_more_than_may_be_is_refused() -> None:
    with pytest.raises(RefusedError, match="no whole packed envelope"):
        unpacked(gzip.compress(bytes(LARGEST + 1)))


@pytest.mark.parametrize("change", ["cut off", "longer", "another byte"])
def test_damage_is_refused(lab: Machine, change: str) -> None:
    data = envelope_of("lock", "d" * 64, TEXT, lab.signer)
    changed = {
        "cut off": data[:-9],
        "longer": data + b"x",
        "another byte": data[:200] + bytes([data[200] ^ 1]) + data[201:],
    }[change]
    with pytest.raises(RefusedError, match="it is damaged"):
        word_of(changed, "lock", "d" * 64, [lab.key.key])


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    with contextlib.suppress(RefusedError):
        unpacked(GZIP + data)
    assert unpacked(b"{" + data) == b"{" + data


def test_a_large_record_counts_in_a_look_at_the_whole_store(lab: Machine, tmp_path: Path) -> None:
    bucket = Bucket((tmp_path / "bucket").as_uri())
    made = lab.make()
    noted = made.model_copy(update={"key": "e" * 64, "notes": tuple(f"note {n}" for n in range(5000))})
    lab.store.put_record(noted)
    lab.push(bucket, made, noted)
    assert len(read_contents(bucket).records) == 2
    assert check(bucket).wrong == ()
