"""What is new in a log against a good one of the same step."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwright.diagnosis.novel import MOST_TOLD, novelty, template, weight
from rocwright.diagnosis.read_log import pieces

STAMP = b"2026-11-26T17:46:46.463Z "
GOOD = b"""\
-- The C compiler identification is GNU 14.2.0
-- Looking for sgemm_ - not found
[1/3] /usr/bin/c++ -O2 -c /build/src/a.cpp -o a.o
/build/src/a.cpp:10:3: warning: unused variable 'error_code'
[2/3] /usr/bin/c++ -O2 -c /build/src/b.cpp -o b.o
[3/3] linking 4f2a91bc77
took 12.5 s
"""
BAD = b"""\
-- The C compiler identification is GNU 15.1.0
-- Looking for sgemm_ - not found
[1/3] /usr/bin/c++ -O2 -c /tmp/other/src/a.cpp -o a.o
/tmp/other/src/a.cpp:11:3: warning: unused variable 'error_code'
[2/3] /usr/bin/c++ -O2 -c /tmp/other/src/b.cpp -o b.o
/tmp/other/src/b.cpp:3:10: fatal error: hip/hip_bf8.h: No such file or directory
compilation terminated.
ninja: build stopped: subcommand failed.
"""


def of(bad: bytes, good: bytes) -> list[tuple[int, str]]:
    found = novelty(pieces(io.BytesIO(bad)), pieces(io.BytesIO(good)))
    return [(one.line, one.text) for one in found.lines]


def test_the_cause_is_first_and_what_was_always_said_is_not_there() -> None:
    found = of(BAD, GOOD)
    assert found[0] == (6, "/tmp/other/src/b.cpp:3:10: fatal error: hip/hip_bf8.h: No such file or directory")
    assert [number for number, _ in found] == [6]


def test_what_says_nothing_of_a_failure_is_told_where_no_other_line_does() -> None:
    assert of(b"it stopped here\n", b"fine\n") == [(1, "it stopped here")]


def test_a_log_has_nothing_new_against_itself_whatever_its_numbers_folders_and_hashes() -> None:
    other = (
        GOOD.replace(b"/build/", b"/home/me/x/").replace(b"4f2a91bc77", b"0011aaffee").replace(b"12.5", b"99")
    )
    assert of(other, GOOD) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"[12/345] at 10:22:31.5", b"[7/9] at 1:2:3.55"),
        (b"/a/b/c/main.cpp:3: x", b"/d/main.cpp:99: x"),
        (b"object 0x7ffe12ab", b"object 0x1"),
        (b"commit 1a2b3c4d5e6f", b"commit abcdef1234567"),
        (b"a   wide gap", b"a wide gap"),
    ],
)
def test_what_changes_from_run_to_run_is_no_difference(one: bytes, other: bytes) -> None:
    assert template(one) == template(other)


def test_the_names_of_files_are_one() -> None:
    assert template(b"/a/one.cpp: x") != template(b"/a/two.cpp: x")


@pytest.mark.parametrize(
    ("more", "less"),
    [
        (b"a.c:1:1: error: no", b"-- checking for error: no"),
        (b"ERROR: it broke", b"DEBUG: error in cache, again"),
        (b"undefined reference to `f'", b"collect2: error: ld returned 1 exit status"),
        (b"fatal error: x.h: No such file or directory", b"ninja: build stopped: subcommand failed."),
        (b"a.c:1:1: error: no", b"a.c:1:1: warning: error is unused"),
        (b"cannot find -lfoo", b"all went well"),
        (b"a.c:1:1: error: no", b"TIP pass --env-dir, see how-to/troubleshooting.html#debug-a-failed-build"),
        (STAMP + b"a.c:1:1: error: no", STAMP + b"ninja: build stopped: error in a subcommand"),
        (STAMP + b"FAILED a test", STAMP + b"a try has failed"),
    ],
)
def test_what_tells_a_failure_weighs_more(more: bytes, less: bytes) -> None:
    assert weight(more) > weight(less)


def test_a_line_is_told_without_the_time_that_stands_before_it() -> None:
    assert of(STAMP + b"a.c:1:1: error: no\n", b"fine\n")[0][1] == "a.c:1:1: error: no"


def test_of_equals_the_one_that_is_nearer_to_the_end_is_first() -> None:
    filler = b"".join(b"step %c%c\n" % (97 + n // 26, 97 + n % 26) for n in range(400))
    bad = b"error: early\n" + filler + b"error: late\n"
    assert of(bad, filler)[0][1] == "error: late"


def test_no_more_lines_are_told_than_fit_and_all_are_counted() -> None:
    bad = b"".join(b"error: kind %c%c\n" % (97 + n // 26, 97 + n % 26) for n in range(100))
    found = novelty(pieces(io.BytesIO(bad)), pieces(io.BytesIO(b"fine\n")))
    assert found.count == 100
    assert len(found.lines) == MOST_TOLD


def test_a_large_log_of_many_kinds_of_lines_takes_little_memory() -> None:
    def kinds(count: int) -> Iterator[bytes]:
        for begin in range(0, count, 20_000):
            words = (
                bytes(97 + (n >> shift) % 16 for shift in range(0, 20, 4))
                for n in range(begin, begin + 20_000)
            )
            yield b"".join(b"a line of the kind %s\n" % word for word in words)

    tracemalloc.start()
    try:
        novelty(kinds(600_000), iter([b"fine\n"]))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 120 * 1024 * 1024


@given(st.binary(max_size=400), st.binary(max_size=400))
def test_no_bytes_break_it(bad: bytes, good: bytes) -> None:
    found = novelty(pieces(io.BytesIO(bad)), pieces(io.BytesIO(good)))
    assert len(found.lines) <= MOST_TOLD
    assert found.count >= len(found.lines)
    assert of(bad, bad) == []
