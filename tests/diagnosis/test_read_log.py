"""Logs as they are: of any size and encoding, compressed, cut off, with what terminals leave in them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from rocbase.errors import InputError
from rocbase.files.bounds import LOGS
from rocwright.diagnosis.diagnose import diagnose
from rocwright.diagnosis.read_log import open_log, pieces

ERROR = "b.cpp:3:1: error: expected \u2018;\u2019"
LOG = f"[1/2] compiling\n{ERROR}\nFAILED: b.o\n"


def first(data: bytes) -> str:
    found = diagnose(pieces(io.BytesIO(data))).first
    assert found is not None
    return f"{found.line} {found.text}"


@pytest.mark.parametrize(
    "written",
    [
        lambda text: text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.encode("utf-16-be"),
        lambda text: gzip.compress(text.encode()),
        lambda text: lzma.compress(text.encode()),
        lambda text: bz2.compress(text.encode()),
        lambda text: zstandard.compress(text.encode()),
        lambda text: text.replace("error:", "\x1b[1;31merror:\x1b[0m\x1b[K").encode(),
        lambda text: text.replace("expected", "\x1b]8;;http://x\x07expected\x1b]8;;\x07").encode(),
        lambda text: text.replace("b.cpp", "\0b.c\0pp").encode(),
    ],
    ids=[
        "utf8",
        "crlf",
        "utf16",
        "utf16le",
        "utf16be",
        "gzip",
        "xz",
        "bzip2",
        "zstd",
        "colours",
        "link",
        "nul",
    ],
)
def test_a_log_is_read_however_it_was_written(written: Callable[[str], bytes]) -> None:
    assert first(written(LOG)) == "2 b.cpp:3:1: error: expected ';'"


def test_a_carriage_return_ends_a_line_as_progress_bars_write_it() -> None:
    assert first(b"[1/2] a\r[2/2] b\ra.c:1: error: x\n") == "3 a.c:1: error: x"


def test_a_piece_has_all_whole_lines_that_were_read() -> None:
    assert [*pieces(io.BytesIO(b"a\nb\ncd"), 5)] == [b"a\nb\n", b"cd\n"]


def test_bytes_that_are_no_text_are_shown_as_such_and_stop_nothing() -> None:
    assert first(b"\xff\xfe\xfa\n"[2:] + b"\xe9tude.c:1: error: \x9b31m\xff\n") == (
        "2 \N{REPLACEMENT CHARACTER}tude.c:1: error: \N{REPLACEMENT CHARACTER}31m\N{REPLACEMENT CHARACTER}"
    )


def test_two_bytes_a_character_are_known_from_eight_characters_on_and_broken_ones_stop_nothing() -> None:
    assert first("error: ü".encode("utf-16-le")) == "1 error: ü"
    assert first(b"a.c:1: error: x\0\0\0\0\0\0\n") == "1 a.c:1: error: x"
    for encoding in ("utf-16-le", "utf-16-be"):
        assert [*pieces(io.BytesIO(("\1" * 20).encode(encoding)))] == [b"\1" * 20 + b"\n"]
    assert first("\ufeff\ud800\nerror: x".encode("utf-16-le", "surrogatepass")) == "2 error: x"


def test_a_compressed_log_that_is_cut_off_is_read_as_far_as_it_goes() -> None:
    whole = gzip.compress((LOG + "".join(f"line {n * 7919 % 104729}\n" for n in range(50_000))).encode())
    assert first(whole[: len(whole) // 2]).startswith("2 b.cpp")


def test_a_log_that_unpacks_to_more_than_any_real_one_is_read_so_far() -> None:
    *_, last = pieces(io.BytesIO(gzip.compress(b"y\n" * LOGS.free, compresslevel=1)))
    assert b"it unpacks to more bytes than any real one" in last


def test_a_line_without_end_is_read_in_bounded_memory_and_shown_cut() -> None:
    size = 40 * 1024 * 1024

    class Endless(io.RawIOBase):
        left = size

        def read(self, wanted: int = -1) -> bytes:
            took = min(wanted, self.left)
            begin = b"a.c:1: error: x" if self.left == size else b""
            self.left -= took
            return (begin + b"y" * took)[:took]

    tracemalloc.start()
    try:
        found = diagnose(pieces(Endless()))  # type: ignore[arg-type]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.first is not None
    assert len(found.first.text) == 300
    assert peak < 20 * 1024 * 1024


def test_an_empty_log_has_no_error() -> None:
    found = diagnose(pieces(io.BytesIO(b"")))
    assert (found.first, found.lines) == (None, 0)


def test_a_log_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"), open_log(tmp_path / "x"):
        pass


@given(st.lists(st.binary(max_size=60), max_size=30), st.integers(1, 64))
def test_no_bytes_break_the_reading_and_every_piece_is_whole_lines(parts: list[bytes], size: int) -> None:
    for one in pieces(io.BytesIO(b"\n".join(parts)), size):
        assert one.endswith(b"\n")
        assert b"\0" not in one
        assert b"\r" not in one


@given(
    st.lists(st.text("abc \u00fc", max_size=12), min_size=1, max_size=40),
    st.integers(30, 64),
    st.sampled_from(["utf-8", "utf-16", "utf-16-be"]),
    st.sampled_from([bytes, gzip.compress, lzma.compress, bz2.compress, zstandard.compress]),
)
def test_pieces_of_any_size_give_every_line(
    lines: list[str], size: int, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    text = "".join(f"{line}\n" for line in ["eight or more letters", *lines])
    data = text.encode() if pack is not bytes else text.encode(encoding)
    for file in (io.BytesIO(pack(data)), io.BufferedReader(io.BytesIO(pack(data)))):
        assert b"".join(pieces(file, size)).decode() == text


@pytest.mark.parametrize("begin", [b"\x7fELF\2\1\1", b"PK\3\4", b"!<arch>\n", b"GGUF"])
def test_a_program_is_no_log(tmp_path: Path, begin: bytes) -> None:
    (tmp_path / "file").write_bytes(begin + bytes(100))
    with pytest.raises(InputError, match="is no log"), open_log(tmp_path / "file"):
        pass
