"""Why two files differ, in words."""

from __future__ import annotations

import time
import zipfile

from hypothesis import given
from hypothesis import strategies as st

from rocwheel_samples.tables import each
from rocwright.verify.reproduce.reasons import reasons, zip_reasons

PYC = b"\xa7\r\r\n" + bytes(4)


@each(
    ("path", "before", "after", "says"),
    [
        ("a.txt", b"on Jan  2 2026", b"on Mar 12 2026", ["time: Jan  2 2026 -> Mar 12 2026"]),
        ("a.py", b"t = 1767312000", b"t = 1767398400", ["time: 1767312000 -> 1767398400"]),
        ("a.so", b"\0/build/a/x.c\0", b"\0/home/me/x.c\0", ["path: /build/a/x.c -> /home/me/x.c"]),
        ("a.txt", b"a\nb\n", b"b\na\n", ["order: the same lines in another order"]),
        ("a.txt", b"a\nb\n", b"a\nc\n", ["content: line 2: b -> c"]),
        ("a.bin", b"\0ab", b"\0ac", ["content: from byte 2 on"]),
        ("a.txt", b"a\r\n", b"a\n\n", ["content: 1 line -> 2"]),
        (
            "a.txt",
            b"x at 2026-01-02",
            b"y at 2026-01-03",
            ["time: 2026-01-02 -> 2026-01-03", "content: something else differs too"],
        ),
        (
            "a.pyc",
            PYC + b"\1\0\0\0\5\0\0\0code",
            PYC + b"\2\0\0\0\5\0\0\0code",
            ["time: that of the source in the header of the .pyc"],
        ),
        ("a.pyc", PYC + bytes(8) + b"code", PYC + bytes(8) + b"cade", ["content: from byte 17 on"]),
    ],
)
def test_a_reason_is_what_differs(path: str, before: bytes, after: bytes, says: list[str]) -> None:
    assert list(reasons(path, before, after)) == says


@given(st.binary(max_size=200), st.binary(max_size=200), st.sampled_from(["a", "a.pyc"]))
def test_any_two_contents_have_a_reason_that_is_one_line(before: bytes, after: bytes, path: str) -> None:
    if before != after:
        found = list(reasons(path, before, after))
        assert found
        assert all(one.isprintable() for one in found)


@each("unit", [b"/a", b"1", b"2026-", b"00:00:", b"/" + b"a" * 300])
def test_a_file_that_is_made_to_be_slow_is_not(unit: bytes) -> None:
    content = unit * (1024**2 // len(unit))
    begun = time.process_time()
    assert list(reasons("a", content + b"x", content + b"y"))
    assert time.process_time() - begun < 10


def test_a_zip_differs_in_what_its_directory_says() -> None:
    def info(name: str, when: int = 2020, mode: int = 0o644, crc: int = 1) -> zipfile.ZipInfo:
        made = zipfile.ZipInfo(name, (when, 1, 1, 0, 0, 0))
        made.external_attr, made.CRC = mode << 16, crc
        return made

    record = "a-1.dist-info/RECORD"
    one = [info("a"), info("b"), info(record)]
    assert list(zip_reasons(one, [info("b"), info("a"), info(record)])) == [
        "order: the files are in another order"
    ]
    assert list(zip_reasons(one, [info("a", 2021), info("b"), info(record)])) == [
        "time: 1 file, 2020-01-01 00:00:00 -> 2021-01-01 00:00:00 (a)"
    ]
    assert list(zip_reasons(one, [info("a", mode=0o755), info("b"), info(record)])) == [
        "modes: of 1 file (a)"
    ]
    assert list(zip_reasons(one, [info("a"), info("b"), info(record, crc=2)])) == [
        "RECORD: it is another one for the same files"
    ]
    assert list(zip_reasons(one, one)) == []
