"""Heads of GGUF files: what they say, and that no byte of one can do harm."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocbase.errors import CheckError
from rocwright.catalog.model_files import model_facts
from rocwright.serving.models.gguf import MOST_HEAD, read_gguf
from rocwright.serving.models.model import Head
from rocwright.verify.tiny_gguf import write_tiny_model

FACTS = model_facts()


def head(path: Path) -> Head:
    return read_gguf(path, FACTS)[0]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_tiny_model(path)
    return path


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def key(name: str, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def number(name: str, value: int) -> bytes:
    return key(name, 4, struct.pack("<I", value))


def tensor(name: str, shape: tuple[int, ...], kind: int, offset: int) -> bytes:
    return text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}QIQ", *shape, kind, offset)


def written(path: Path, keys: list[bytes], tensors: list[bytes], data: int = 0, version: int = 3) -> Path:
    begin = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys)) + b"".join(keys + tensors)
    path.write_bytes(begin + bytes(-len(begin) % 32) + bytes(data))
    return path


def test_the_tiny_model_is_read_whole(tiny: Path) -> None:
    found = head(tiny)
    assert (found.architecture, found.quantisation, found.context, found.layers) == ("llama", "F32", 2048, 2)
    assert (found.kv_heads, found.key, found.value) == ((2, 2), 64, 64)
    assert found.weights == 4 * found.parameters < tiny.stat().st_size


def test_the_missing_bytes_of_a_truncated_model_are_told(tiny: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(tiny.read_bytes()[:-100_000])
    with pytest.raises(CheckError, match=r"at least 100,000 bytes .* are missing"):
        head(cut)


def test_a_model_that_ends_in_its_head_is_cut_short(tiny: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(tiny.read_bytes()[:2000])
    with pytest.raises(CheckError, match="cut short"):
        head(cut)


def test_quantised_tensors_take_their_blocks(tmp_path: Path) -> None:
    path = written(
        tmp_path / "q.gguf",
        [key("general.architecture", 8, text("x")), number("general.file_type", 15)],
        [tensor("a", (256, 2), 12, 0), tensor("b", (32,), 8, 288)],
        288 + 64,
    )
    assert (head(path).weights, head(path).parameters) == (2 * 144 + 34, 544)
    assert head(path).quantisation == "Q4_K_M"


def test_heads_for_each_layer_are_kept(tmp_path: Path) -> None:
    heads = struct.pack("<IQ3I", 4, 3, 8, 0, 4)
    keys = [
        key("general.architecture", 8, text("x")),
        number("x.block_count", 3),
        number("x.embedding_length", 64),
        number("x.attention.head_count", 8),
        key("x.attention.head_count_kv", 9, heads),
    ]
    found = head(written(tmp_path / "h.gguf", keys, []))
    assert (found.kv_heads, found.key) == ((8, 0, 4), 8)


BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "another program's file": (lambda p: written(p, [], []).with_name("x"), "GGUF"),
    "too many keys": (
        lambda p: _raw(p, b"GGUF" + struct.pack("<IQQ", 3, 0, 2**40)),
        "says that it has 1,099,511,627,776 keys",
    ),
    "too many tensors": (lambda p: _raw(p, b"GGUF" + struct.pack("<IQQ", 3, 2**63, 0)), "tensors"),
    "an endless key": (
        lambda p: _raw(p, b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**62)),
        "a key says that it is",
    ),
    "an endless array": (
        lambda p: written(p, [key("a", 9, struct.pack("<IQ", 4, 2**61))], []),
        "it ends within a",
    ),
    "endless texts": (
        lambda p: written(p, [key("a", 9, struct.pack("<IQ", 8, 2**61))], []),
        "it ends within a",
    ),
    "an array of arrays": (lambda p: written(p, [key("a", 9, struct.pack("<IQ", 9, 1))], []), "no program"),
    "a value of no type": (lambda p: written(p, [key("a", 99, b"")], []), "unknown type 99"),
    "a key twice": (lambda p: written(p, [number("a", 1), number("a", 2)], []), "twice"),
    "five dimensions": (lambda p: written(p, [], [tensor("a", (1,) * 5, 0, 0)], 32), "dimensions"),
    "more numbers than can be": (
        lambda p: written(p, [], [tensor("a", (2**40, 2**40), 0, 0)], 32),
        "more numbers",
    ),
    "rows of no whole blocks": (lambda p: written(p, [], [tensor("a", (33,), 8, 0)], 64), "no multiple"),
    "a gap": (
        lambda p: written(p, [], [tensor("a", (8,), 0, 0), tensor("b", (8,), 0, 64)], 96),
        "does not lie where it should",
    ),
    "one name for two": (
        lambda p: written(p, [], [tensor("a", (8,), 0, 0), tensor("a", (8,), 0, 32)], 64),
        "one name",
    ),
    "an alignment of three": (lambda p: written(p, [number("general.alignment", 3)], []), "alignment"),
    "the first version": (lambda p: written(p, [], [], version=1), "version 1"),
    "another byte order": (lambda p: written(p, [], [], version=3 << 24), "big-endian"),
}


def _raw(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", [one for one in BAD if one != "another program's file"])
def test_what_cannot_be_is_refused_in_one_message(name: str, tmp_path: Path) -> None:
    write, says = BAD[name]
    with pytest.raises(CheckError) as refused:
        head(write(tmp_path / "bad.gguf"))
    assert says in f"{refused.value.message} {refused.value.cause}"


def test_what_is_no_gguf_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="damaged"):
        head(_raw(tmp_path / "x.gguf", b"PK\x03\x04"))


@pytest.mark.timeout(120)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_byte_of_a_head_makes_a_traceback(tiny: Path, tmp_path: Path, data: st.DataObject) -> None:
    good = tiny.read_bytes()
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.one_of(st.integers(0, 1000), st.integers(0, 12_000)))
        new = data.draw(st.one_of(st.binary(min_size=1, max_size=8), st.just(b"\xff" * 8)))
        bad[at : at + len(new)] = new
    path = _raw(tmp_path / "bad.gguf", bytes(bad[: data.draw(st.sampled_from([len(bad), 9000, 30]))]))
    try:
        found = head(path)
    except CheckError:
        pass
    else:
        assert 0 <= found.weights <= len(good)


def test_a_head_that_has_no_end_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "sparse.gguf"
    count = 2**33
    begin = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + key("a", 9, struct.pack("<IQ", 0, count))
    path.write_bytes(begin)
    with path.open("r+b") as file:
        file.truncate(count + 1000)  # a hole: it takes no room
    with pytest.raises(CheckError) as refused:
        head(path)
    assert f"longer than {MOST_HEAD:,} bytes" in refused.value.cause
