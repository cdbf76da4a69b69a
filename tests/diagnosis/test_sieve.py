"""What is found by the texts of patterns is what each pattern finds on each line by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwright.catalog.issue import options, plain, the_issues, unnamed
from rocwright.catalog.literals import literals
from rocwright.diagnosis.scan import Hit, Scan
from rocwright.diagnosis.sieve import COMMON, Sieve, Text

ISSUES, LINES = the_issues()
SIGNATURES = (*ISSUES.values(), *LINES.error_line)
PATTERNS = [text for one in SIGNATURES for text in one.patterns]
EXAMPLES = [plain(line) for one in SIGNATURES for line in (*one.examples, *one.no_match)]


class EachByItself(Sieve):
    """Tries each pattern on each line."""

    def texts_in(self, piece: bytes) -> list[Text]:
        return [Text(b"", False, tuple(range(len(PATTERNS))))]

    def places(self, piece: bytes, text: Text, patterns: Iterable[int], at: int) -> Iterator[int]:
        while at < len(piece):
            yield at
            at = piece.index(b"\n", at) + 1


EACH, TEXTS = EachByItself(PATTERNS), Sieve(PATTERNS)

LOG_LINES = st.builds(
    lambda stamp, line, more, cut: (stamp + line + more)[cut:],
    st.sampled_from((b"", b"#12 3.4 ", b"  ", b"[   12.345678] ", b"x" * 9000 + b" ")),
    st.sampled_from(EXAMPLES),
    st.sampled_from((b"", b" ", b".", b" INFO ")) | st.sampled_from(EXAMPLES),
    st.integers(0, 12),
)


def hits(sieve: Sieve, pieces: list[bytes]) -> list[Hit]:
    scan = Scan(SIGNATURES, LINES.before, LINES.calm, LINES.quoted)
    scan._sieve = sieve
    for piece in pieces:
        scan.feed(piece)
    return scan.hits


@settings(max_examples=15)
@given(st.lists(st.lists(LOG_LINES, min_size=1, max_size=6), min_size=1, max_size=3))
def test_texts_find_what_each_pattern_finds_on_each_line(lines: list[list[bytes]]) -> None:
    pieces = [b"".join(line + b"\n" for line in each) for each in lines]
    assert hits(TEXTS, pieces) == hits(EACH, pieces)


@pytest.mark.parametrize(("many", "places"), [(3, [0, 11, 22, 33, 50, 61, 72]), (COMMON, [11 * COMMON])])
def test_a_line_is_found_behind_others_that_have_the_text(many: int, places: list[int]) -> None:
    pattern, calm = r"\bring \w+ timeout", b"no timeout\n" * many
    piece, sieve = calm + b"ring gfx timeout\n" + calm, Sieve([pattern])
    (text,) = sieve.texts_in(piece)
    assert text.text == b" timeout"
    assert [*sieve.places(piece, text, [0], 0)] == places


def test_each_example_has_one_of_its_patterns_texts() -> None:
    without = []
    for one in SIGNATURES:
        for pattern in one.patterns:
            whole, has = re2.compile(unnamed(pattern).encode(), options()), literals(pattern)
            for line in map(plain, one.examples) if has else ():
                said = line.lower() if has and has.folds else line
                if whole.search(line) and has and not any(text in said for text in has.texts):
                    without.append((pattern, line))
    assert without == []


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("(?:^|[: ])(?:fatal )?error: ", {b"error: "}),
        ("^ab+cde?f[0-9]+ghi", {b"ghi"}),
        (
            r"\bno (?:such|known) [Ff]ile\.$",
            {b"no such File.", b"no such file.", b"no known File.", b"no known file."},
        ),
        (r"(?i)Not Found", {b"not found"}),
        (r"xy|longer text", None),
        (r"\w+ [a-z]+", None),
        (r"\xe6\x9c\xaa\t", {b"\xe6\x9c\xaa\t"}),
        (r"(?i:\xe9\xe8\xe7abc)", None),
        (r"a{2}bcd|(?P<x>wxyz)?efgh*", {b"bcd", b"efg"}),
    ],
)
def test_a_patterns_texts_are_those_of_which_each_match_has_one(
    pattern: str, texts: set[bytes] | None
) -> None:
    found = literals(pattern)
    assert (found and set(found.texts)) == texts
