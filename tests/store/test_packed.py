"""What is in a compressed tar, whatever compressed it; and records that say it."""

from __future__ import annotations

import hashlib
import io
import tarfile
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.making import digest, put_output, record_of, small_plan

from rocbase.files.atomic import CHUNK
from rocbase.files.bounds import Bound
from rocwheel_samples.tables import each
from rocwright.sources.archive import unpack
from rocwright.sources.bases.contents import fault
from rocwright.sources.bases.roots import unpack_root
from rocwright.store import packed
from rocwright.store.local import LocalStore
from rocwright.store.model import Output, Record
from rocwright.store.packed import content_of, packing


def output(name: str = "tree", content: str = "", sha256: str = "bytes") -> Output:
    return Output(name=name, filename="x.tar.zst", sha256=digest(sha256), size=1, content=content)


def record(*outputs: Output) -> Record:
    return record_of(small_plan().steps[-1], *outputs)


# what a file holds


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(st.binary(max_size=3000), max_size=6),
    level=st.integers(1, 12),
    threads=st.integers(0, 2),
)
def test_the_content_is_that_of_what_was_written_however_it_was_compressed(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], level: int, threads: int
) -> None:
    path = tmp_path_factory.mktemp("packed") / "x.tar.zst"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "LEVEL", level)
        with packing(path, threads=threads) as writing:
            assert sum(writing.write(one) for one in parts) >= 0
    whole = b"".join(parts)
    assert writing.content == hashlib.sha256(whole).hexdigest() == content_of(path)
    assert zstandard.ZstdDecompressor().stream_reader(path.open("rb")).read() == whole


@pytest.mark.parametrize("data", [b"", b"no tar", b"\x28\xb5\x2f\xfd" + b"\xff" * 40])
def test_what_cannot_be_unpacked_has_the_content_of_nothing_that_was_packed(
    tmp_path: Path, data: bytes
) -> None:
    (tmp_path / "x").write_bytes(data)
    assert content_of(tmp_path / "x") in ("", hashlib.sha256(b"").hexdigest())


SKIPPED = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"junk"
"""A frame that zstd passes over."""


@pytest.mark.parametrize("between", [(), (b"",), (b"", SKIPPED, b"")])
def test_all_frames_count_so_that_none_is_hidden(
    store: LocalStore, tmp_path: Path, between: tuple[bytes, ...]
) -> None:
    """Whoever unpacked the first frame alone would have another tree than was told, and see no fault."""
    whole, path = io.BytesIO(), tmp_path / "x.tar.zst"
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for name in ("one", "two"):
            tar.addfile(tarfile.TarInfo(name))
    parts = whole.getvalue()[:512], *between, whole.getvalue()[512:]
    compress = zstandard.ZstdCompressor().compress
    path.write_bytes(b"".join(one if one == SKIPPED else compress(one) for one in parts))
    assert content_of(path) == hashlib.sha256(whole.getvalue()).hexdigest()
    unpack(path, tmp_path / "tree", wrapped=False)
    sha256, _ = store.put_file(path)
    (tmp_path / "root").mkdir()
    unpack_root(store, sha256, tmp_path / "root")
    for folder in ("tree", "root"):
        assert sorted(one.name for one in (tmp_path / folder).iterdir()) == ["one", "two"]
    assert fault(store, sha256, tmp_path / "root") == ""


def test_a_bomb_is_given_up_and_takes_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb"
    with packing(path) as writing:
        for _ in range(64):
            writing.write(bytes(2**20))
    assert path.stat().st_size < 10_000
    tracemalloc.start()
    assert content_of(path) == writing.content
    assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    tracemalloc.stop()
    monkeypatch.setattr(packed, "TREES", Bound(size=2**24))
    read: list[int] = []

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            read.append(size or 0)
            return bytes(size or 0) if len(read) < 40 else b""

    monkeypatch.setattr(packed, "unzstd", lambda source: Counted())
    assert content_of(path) == ""
    assert sum(read) < 2**24 + 2 * CHUNK, "it is not read to its end"


# what is the same


@each(
    ("one", "other", "same"),
    [
        (output(content=digest("c"), sha256="a"), output(content=digest("c"), sha256="b"), True),
        (output(content=digest("c"), sha256="a"), output(content=digest("d"), sha256="a"), False),
        (output(content=digest("c"), sha256="a"), output(sha256="a"), True),
        (output(content=digest("c"), sha256="a"), output(sha256="b"), False),
        (output(sha256="a"), output(sha256="b"), False),
        (output(content=digest("a"), sha256="b"), output(sha256="a"), False),
    ],
)
def test_outputs_are_compared_by_content_where_both_say_it_else_by_bytes(
    one: Output, other: Output, same: bool
) -> None:
    assert one.is_same(other) is other.is_same(one) is same
    assert record(one).gave_same(record(other)) is same


def test_records_with_other_names_or_more_outputs_did_not_give_the_same() -> None:
    first, second = output("a", sha256="a"), output("b", sha256="b")
    assert record(first, second).gave_same(record(second, first))
    assert not record(first).gave_same(record(first, second))
    assert not record(first).gave_same(record(output("b", sha256="a")))
    # which of two outputs of one name is meant, is nothing to agree on
    evil = output("a", sha256="evil")
    assert not record(first).gave_same(record(evil, first))
    assert not record(evil, first).gave_same(record(first, evil))


@each("content", ["x", "A" * 64, "a" * 63, "../" * 21 + "a"])
def test_a_content_that_is_no_digest_is_no_content(content: str) -> None:
    with pytest.raises(ValidationError):
        output(content=content)


# how it is written


def test_a_record_says_what_is_in_what_was_packed(store: LocalStore, tmp_path: Path) -> None:
    *_, one, two = small_plan().steps
    plain = put_output(store, one, "tree", b"a tree", tmp_path)
    packed_here = plain.model_copy(update={"content": digest("content")})
    store.put_record(record_of(two, packed_here))
    found = LocalStore(store.path).record(two.key)
    assert found is not None
    assert found.outputs == (packed_here,)
    # and on its way from the process of a step to the build
    assert Record.model_validate_json(found.model_dump_json()) == found
