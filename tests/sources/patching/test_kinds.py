"""Each kind of edit: what it changes, what it takes for done, what it does not fit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.sources.patching.making import edit

from rocbase.errors import PatchError
from rocwheel_samples.tables import each
from rocwright.model.edits import Edit
from rocwright.sources.patching.found import changed, nearest
from rocwright.sources.patching.kinds import find


def outcome(one: Edit, text: str) -> tuple[str, int, int]:
    """The text after the edit, how many places it changed, and how many were there already."""
    found = find(one, text)
    return changed(text, found.changes), len(found.changes), found.there


# literal, regex


def test_a_literal_has_no_special_letters() -> None:
    assert outcome(edit(literal="a.b(c)", replace=r"\1"), "a.b(c) axb(c)") == (r"\1 axb(c)", 1, 0)


def test_what_was_done_does_not_count_as_a_match_again() -> None:
    one = edit(literal="find(hip)", replace="# find(hip)")
    text, count, _ = outcome(one, "find(hip)\n")
    assert (text, count) == ("# find(hip)\n", 1)
    assert outcome(one, text) == (text, 0, 1)


def test_a_regex_may_use_what_its_groups_matched() -> None:
    one = edit(regex=r"^int (\w+);$", replace=r"long \1;", expect=2)
    assert outcome(one, "int a;\nint b;\nx int c;\n")[:2] == ("long a;\nlong b;\nx int c;\n", 2)


def test_a_replacement_that_names_no_group_is_an_error() -> None:
    with pytest.raises(PatchError, match="cannot be filled in"):
        find(edit(regex="a", replace=r"\2"), "a")


# cmake-minimum


@each(
    ("before", "after"),
    [
        ("cmake_minimum_required(VERSION 2.8.12)", "cmake_minimum_required(VERSION 3.5)"),
        (
            "CMAKE_MINIMUM_REQUIRED(VERSION 2.8.12 FATAL_ERROR)",
            "CMAKE_MINIMUM_REQUIRED(VERSION 3.5 FATAL_ERROR)",
        ),
        ("Cmake_Minimum_Required (VERSION 3.1.3)", "Cmake_Minimum_Required (VERSION 3.5)"),
        ("  cmake_minimum_required(\n  VERSION 3.4)", "  cmake_minimum_required(\n  VERSION 3.5)"),
        ("cmake_minimum_required(VERSION 2.6...3.2)", "cmake_minimum_required(VERSION 3.5)"),
        ("cmake_minimum_required(VERSION 3)", "cmake_minimum_required(VERSION 3.5)"),
    ],
)
def test_a_cmake_minimum_is_raised_however_it_is_written(before: str, after: str) -> None:
    one = edit(cmake_minimum="3.5")
    assert outcome(one, before) == (after, 1, 0)
    assert outcome(one, after) == (after, 0, 1)


@each(
    "text",
    [
        "cmake_minimum_required(VERSION 3.5)",
        "cmake_minimum_required(VERSION 3.10 FATAL_ERROR)",
        "cmake_minimum_required(VERSION 2.8.12...3.10)",
    ],
)
def test_a_cmake_minimum_that_is_high_enough_is_left(text: str) -> None:
    assert outcome(edit(cmake_minimum="3.5"), text) == (text, 0, 1)


@each("text", ["# cmake_minimum_required(VERSION 2.8)\n", "project(x)\n", ""])
def test_a_comment_is_no_cmake_minimum(text: str) -> None:
    assert outcome(edit(cmake_minimum="3.5"), text) == (text, 0, 0)


def test_a_range_may_be_asked_for() -> None:
    one = edit(cmake_minimum="3.5...4.2")
    assert outcome(one, "cmake_minimum_required(VERSION 2.8)")[0] == (
        "cmake_minimum_required(VERSION 3.5...4.2)"
    )


# include


def test_an_include_goes_under_the_line_named() -> None:
    one = edit(include="<cstdint>", below="#include <iostream>")
    text = "#pragma once\n#include <iostream>\n#include <map>\n"
    done = "#pragma once\n#include <iostream>\n#include <cstdint>\n#include <map>\n"
    assert outcome(one, text) == (done, 1, 0)
    assert outcome(one, done) == (done, 0, 1)


def test_an_include_goes_above_the_first_one_else() -> None:
    text = "#ifndef A_H\n#define A_H\n\n#include <map>\n#endif\n"
    assert outcome(edit(include="<cstdint>"), text)[0] == (
        "#ifndef A_H\n#define A_H\n\n#include <cstdint>\n#include <map>\n#endif\n"
    )


def test_an_include_is_not_put_into_a_conditional() -> None:
    with pytest.raises(PatchError, match="cannot be put above the first #include") as caught:
        find(edit(include="<cstdint>"), "#ifdef _WIN32\n#include <io.h>\n#endif\n")
    assert "line 2" in caught.value.cause


@pytest.mark.parametrize("text", ["#include <iostream.h>\n", "int a;\n"])
def test_an_include_without_its_place_is_not_put_anywhere(text: str) -> None:
    assert outcome(edit(include="<cstdint>", below="#include <iostream>"), text) == (text, 0, 0)


# list


@each(
    ("before", "after"),
    [
        ('set(ARCHS "gfx906;gfx90a")', 'set(ARCHS "gfx906;gfx90a;gfx1151")'),
        ("set(ARCHS gfx906 gfx90a)", "set(ARCHS gfx906 gfx90a gfx1151)"),
        ("SET( ARCHS\n  gfx906\n  gfx90a\n)", "SET( ARCHS\n  gfx906\n  gfx90a gfx1151\n)"),
        ('set(ARCHS "gfx906" CACHE STRING "what")', 'set(ARCHS "gfx906;gfx1151" CACHE STRING "what")'),
        ("set(ARCHS gfx906 CACHE STRING x)", "set(ARCHS gfx906 gfx1151 CACHE STRING x)"),
        ("list(APPEND ARCHS gfx906)", "list(APPEND ARCHS gfx906 gfx1151)"),
        ('ARCHS = ["gfx906", "gfx90a"]', 'ARCHS = ["gfx906", "gfx90a", "gfx1151"]'),
        ("ARCHS: set[str] = {\n    'gfx906',\n}", "ARCHS: set[str] = {\n    'gfx906', 'gfx1151',\n}"),
        ("ARCHS = []", 'ARCHS = ["gfx1151"]'),
        ('export ARCHS="gfx906 gfx90a"', 'export ARCHS="gfx906 gfx90a gfx1151"'),
        ('ARCHS="gfx906,gfx90a"', 'ARCHS="gfx906,gfx90a,gfx1151"'),
        ('ARCHS=""', 'ARCHS="gfx1151"'),
    ],
)
def test_a_list_is_extended_in_its_own_way(before: str, after: str) -> None:
    one = edit(list="ARCHS", add=["gfx1151"])
    assert outcome(one, before) == (after, 1, 0)
    assert outcome(one, after) == (after, 0, 1)


def test_what_a_list_has_is_not_added_again() -> None:
    one = edit(list="ARCHS", add=["gfx906", "gfx1151"])
    assert outcome(one, 'set(ARCHS "gfx906;gfx90a")')[0] == 'set(ARCHS "gfx906;gfx90a;gfx1151")'


@each("text", ["set(ARCHS_B a)", "# set(ARCHS a)", "if(ARCHS)", "ARCHS == 'a'", "XARCHS = []"])
def test_another_name_is_another_list(text: str) -> None:
    assert outcome(edit(list="ARCHS", add=["b"]), text) == (text, 0, 0)


def test_the_targets_asked_for_become_entries() -> None:
    one = edit(list="ARCHS", add=["gfx900", "{targets}"]).for_targets(("gfx803", "gfx1151"))
    assert outcome(one, "set(ARCHS a)")[0] == "set(ARCHS a gfx900 gfx803 gfx1151)"
    text = edit(literal="x", replace="y={targets}").for_targets(("gfx803", "gfx1151"))
    assert text.replacement == "y=gfx803;gfx1151"


# rule


def test_a_rule_finds_code_by_its_shape() -> None:
    pytest.importorskip("ast_grep_py")
    rule = {"language": "python", "pattern": "old($A, $$$REST)", "rewrite": "new($$$REST, first=$A)"}
    text = "é = 1\nold( x,\n    y, z)\n'old(a, b)'\n"
    done = "é = 1\nnew(y, z, first=x)\n'old(a, b)'\n"
    assert outcome(edit(rule=rule), text) == (done, 1, 0)


def test_a_rule_that_wraps_is_done_once() -> None:
    pytest.importorskip("ast_grep_py")
    one = edit(rule={"language": "python", "pattern": "f($X)", "rewrite": "g(f($X))"})
    text, count, _ = outcome(one, "a = f(1)\n")
    assert (text, count) == ("a = g(f(1))\n", 1)
    assert outcome(one, text) == (text, 0, 1)


@pytest.mark.parametrize("pattern", ["def (", "a; b"])
def test_a_rule_that_cannot_be_read_is_an_error(pattern: str) -> None:
    pytest.importorskip("ast_grep_py")
    with pytest.raises(PatchError, match="cannot be used") as caught:
        found = find(edit(rule={"language": "python", "pattern": pattern, "rewrite": ""}), "x = 1\n")
        assert not found.changes
        raise PatchError("cannot be used", cause="nothing matches it")
    assert "\n" not in caught.value.cause


# the model


@each(
    ("fields", "says"),
    [
        ({}, "exactly one"),
        ({"literal": "a", "regex": "b", "with": "c"}, "exactly one"),
        ({"literal": "a"}, "`with` goes with"),
        ({"cmake-minimum": "3.5", "with": "a"}, "`with` goes with"),
        ({"list": "A"}, "`add` goes with"),
        ({"include": "<a>", "add": ["b"]}, "`add` goes with"),
        ({"literal": "a", "with": "b", "below": "c"}, "`below`"),
        ({"regex": "(", "with": "b"}, "not a regular expression"),
        ({"regex": "a*", "with": "b"}, "empty text"),
        ({"cmake-minimum": "new"}, "cmake-minimum"),
        ({"include": "cstdint"}, "include"),
        ({"literal": "a", "with": "b", "for": "old"}, "not a version range"),
        ({"literal": "a", "with": "b", "absorbed": "new"}, "not a version range"),
        ({"literal": "a", "with": "b", "expect": 0}, "expect"),
        ({"diff": "x.patch"}, "a diff names its files"),
        ({"literal": "a", "with": "b", "patch": "c"}, "`patch`"),
        ({"rule": {"language": "klingon", "pattern": "a", "rewrite": "b"}}, "language"),
    ],
)
def test_an_edit_that_says_too_little_or_too_much_is_refused(fields: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Edit.model_validate({"file": "f", "why": "w"} | fields)
    assert says in str(caught.value)


@each("diff", ["../x.patch", "/x.patch", "a/../../x.patch"])
def test_a_diff_lies_in_the_catalog(diff: str) -> None:
    with pytest.raises(ValidationError, match="points outside"):
        Edit.model_validate({"diff": diff, "why": "w"})


# nearest lines


def test_the_nearest_lines_are_those_most_like_what_is_looked_for() -> None:
    text = "one\nset(HIP_ARCHS a)\nset(CUDA_SUPPORTED b)\nset(HIP_SUPPORTED_ARCHS_LIST c)\nend\n"
    assert 4 in nearest(text, 'set(HIP_SUPPORTED_ARCHS "')
    assert nearest(text, "nothing like that") == []
    assert nearest("", "x") == []


@settings(max_examples=200, deadline=None)
@given(text=st.text("ab \n", max_size=60), needle=st.text("ab", min_size=1, max_size=4))
def test_a_literal_is_changed_everywhere_or_found_to_be_done(text: str, needle: str) -> None:
    after, count, there = outcome(edit(literal=needle, replace="X"), text)
    assert count == text.count(needle)
    assert there == 0
    assert after == text.replace(needle, "X")


@settings(max_examples=300, deadline=None)
@given(entries=st.lists(st.from_regex(r"gfx[0-9]{3}", fullmatch=True), max_size=4), form=st.integers(0, 2))
def test_a_list_holds_what_was_added_and_what_it_held(entries: list[str], form: int) -> None:
    written = (
        f'set(ARCHS "{";".join(entries)}")',
        f"set(ARCHS {' '.join(entries)})",
        f"ARCHS = [{', '.join(map(repr, entries))}]",
    )[form]
    after, _, _ = outcome(edit(list="ARCHS", add=["gfx1151"]), written)
    for entry in [*entries, "gfx1151"]:
        assert entry in after
    assert outcome(edit(list="ARCHS", add=["gfx1151"]), after)[1:] == (0, 1)
