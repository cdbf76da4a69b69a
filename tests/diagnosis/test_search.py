"""Known failures by words: what people type finds what they mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwright.catalog.issue import the_issues
from rocwright.diagnosis.search import MOST_LINES, search

ISSUES = the_issues()[0].values()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("atomics", "pcie-atomics"),
        ("pcie atomic", "pcie-atomics"),
        ("out of memory while compiling", "compiler-killed"),
        ("cmake policy", "cmake-minimum"),
        ("TensileLibrary.dat", "rocblas-no-kernels"),
        ("no kernel image", "no-binary-for-gpu"),
        ("gpu hang comfyui", "gpu-hang"),
        ("gtt size", "hip-out-of-memory"),
        ("torch no gpu", "no-hip-gpus"),
        ("permission denied kfd", "kfd-permission"),
        ("secure boot module", "module-not-taken"),
        ("mes firmware", "mes-remove-queue"),
    ],
)
def test_what_people_type_finds_what_they_mean(words: str, name: str) -> None:
    assert name in [one.issue.name for one in search(words, ISSUES)][:3]


def test_words_that_say_nothing_change_nothing() -> None:
    plain = [one.issue.name for one in search("gpu memory full", ISSUES)]
    assert [one.issue.name for one in search("why is the memory of my gpu full", ISSUES)][:3] == plain[:3]
    assert search("the", ISSUES) == search("the the", ISSUES)


def test_the_lines_that_matched_are_told_and_where_they_stand() -> None:
    found = next(one for one in search("TensileLibrary", ISSUES) if one.issue.name == "rocblas-no-kernels")
    assert any(line.startswith("looks: rocBLAS error: Cannot read") for line in found.lines)


def test_a_word_that_few_have_counts_more_than_one_that_many_have() -> None:
    rare, common = search("tensilelibrary", ISSUES)[0].score, search("gpu", ISSUES)[0].score
    assert rare > common


def test_issues_with_all_words_go_before_those_with_one() -> None:
    found = search("firmware wave", ISSUES)
    both = [one for one in found if {"firmware", "wave"} <= {*" ".join(one.lines).lower().split()}]
    assert len(found) < len(search("firmware", ISSUES)) + len(search("wave", ISSUES)) or not both


@given(st.text(max_size=80))
def test_no_words_break_it_and_the_best_is_first(words: str) -> None:
    found = search(words, list(ISSUES)[:20])
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert all(1 <= len(one.lines) <= MOST_LINES for one in found)
