"""Patterns for whole logs: shorter than their own, found in no fewer lines, each of which is tried anew."""

from __future__ import annotations

import pytest
import re2

from rocwheel_samples.tables import each
from rocwright.catalog.issue import anywhere, bare, options, slots_in, stamps, the_issues, unnamed
from rocwright.diagnosis.diagnose import LogSearch

PAIRS = [
    (r"^(?:[^ ]+: )?failed to [a-z]", "failed to [a-z]"),
    (r"^ *CMake Error", "CMake Error"),
    (r"cannot find (?P<what>.{1,80})", "cannot find ."),
    (r"^\S+: fatal: ", r"\S: fatal: "),
    (r"(?:^|[: ])error: ", "error: "),
    (r"x\.+", r"x\.+"),
    (r".*", r".*"),
]


@each(("pattern", "short"), PAIRS)
def test_begin_and_end_lose_what_only_repeats(pattern: str, short: str) -> None:
    assert anywhere(pattern) == f"(?m:{short})"


def test_every_pattern_is_found_in_all_lines_that_it_is_of() -> None:
    issues, lines = the_issues()
    signatures = (*issues.values(), *lines.error_line)
    texts = [text.encode() for one in signatures for text in (*one.examples[:2], *one.no_match[:1])]
    for one in signatures:
        for pattern in one.patterns:
            whole = re2.compile(f"(?m:{unnamed(pattern).removeprefix('^')})".encode(), options())
            short = re2.compile(anywhere(pattern).encode(), options())
            missed = [text for text in texts if whole.search(text) and not short.search(text)]
            assert not missed, (pattern, missed)
            # only one that may begin with the line is found where it does not begin
            if "^" not in unnamed(pattern)[1:]:
                more = [text for text in texts if short.search(text) and not whole.search(text)]
                assert not more, (pattern, more)


def test_a_second_search_compiles_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    LogSearch()
    compiled: list[object] = []
    real = re2.compile

    def noted(*args: object) -> object:
        compiled.append(args[0])
        return real(*args)

    monkeypatch.setattr(re2, "compile", noted)
    LogSearch()
    assert len(compiled) < 20


def test_times_and_names_before_a_line_are_taken_off() -> None:
    known = stamps([r"#\d+ [\d.]+ ", r"\[\w+\] "])
    assert bare(b"#12 34.56 [builder] boom", known) == b"boom"
    assert bare(b"boom #12 34.56 ", known) == b"boom #12 34.56 "
    assert bare(b"[builder] boom", stamps([])) == b"[builder] boom"
    assert bare(b"\xff boom", stamps([r"\S "])) == b"boom"


def test_named_groups_have_the_text_of_the_line_or_a_question_mark() -> None:
    assert slots_in(r"cannot find (?P<what>\S+)(?P<more> in .)?", "cannot find \xe9") == {
        "what": "\xe9",
        "more": "?",
    }
    assert slots_in("cannot find (?P<what>.)", "found") is None
