"""`catalog check` on known failures: patterns, examples, look-alikes, sources and what mends."""

from __future__ import annotations

from pathlib import Path

from rocbase.toml.read import Reader
from rocwheel_samples.trees import write_tree
from rocwright.catalog.folders import DATA
from rocwright.catalog.issue import read_issues
from rocwright.catalog_lint.recipes import check_catalog

ISSUE = """
[[issue]]
name       = "mine"
class      = "compile"
means      = "m"
cause      = "c"
remedy     = "r"
patterns   = ['boom [0-9]+']
examples   = ["boom 1"]
no_match   = ["boom"]
source     = ["a report"]
confidence = "low: quoted"
"""


def told(folder: Path, text: str, under: Path) -> str:
    write_tree(folder, {"issues/mine.toml": text})
    return "\n".join(map(str, check_catalog((folder, under))))


def test_an_issue_of_ones_own_is_added(tmp_path: Path, few_issues: Path) -> None:
    assert told(tmp_path, ISSUE, few_issues) == ""
    found = read_issues(Reader((tmp_path, few_issues)))
    assert {"mine", "cmake-minimum"} <= set(found)


def test_an_issue_of_ones_own_stands_in_place_of_the_carried_one(tmp_path: Path, few_issues: Path) -> None:
    assert told(tmp_path, ISSUE.replace('"mine"', '"cmake-minimum"'), few_issues) == ""
    assert read_issues(Reader((tmp_path, few_issues)))["cmake-minimum"].means == "m"


WRONG = [
    ("boom [0-9]+'", "boom ('", "is not a regular expression that RE2 reads: missing ): boom ("),
    ("boom [0-9]+'", "(boom)?'", "matches the empty line"),
    ("boom [0-9]+'", "boom (?=1)'", "is not a regular expression"),
    ("boom [0-9]+'", "b\u00e4m'", "is not ASCII"),
    ("boom [0-9]+']", "boom [0-9]+', 'bang']", "'bang' has no example"),
    ('"boom 1"', '"boom"', "no pattern matches 'boom'"),
    ('["boom"]', '["boom 2"]', "matches 'boom 2'"),
    ('["a report"]', "[]", "at least 1 item"),
    ('["a report"]', '[" "]', "source"),
    ('"compile"', '"bad luck"', "class"),
    (
        "means",
        'quotes = [{ line = "bang 1", source = "https://a.example/1" }]\nmeans',
        "a program printed",
    ),
    (
        "means",
        'quotes = [{ line = "boom 1\\nx", source = "https://a.b/1" }]\nmeans',
        "than a line",
    ),
    ("means", 'quotes = [{ line = "boom 1", source = "a thread" }]\nmeans', "quotes"),
    ("means", 'filled = { means = "{thing} is gone" }\nmeans', "has no group thing"),
    ("means", 'filled = { means = "{" }\nmeans', "filled"),
    ("boom [0-9]+'", "boom (?P<n>[0-9]+)'", "no filled words"),
    ("means", 'targets = ["gfx1"]\nmeans', "gfx1 is not known"),
    ("means", 'versions = { pytorch = "<2" }\nmeans', "pytorch is not among the components"),
    ("means", 'remedies = [{ kind = "packages", names = ["nosuch"] }]\nmeans', "nosuch is not known"),
    ("means", 'remedies = [{ kind = "pray" }]\nmeans', "remedies.0"),
    ("means", 'bases = ["temple"]\nmeans', "temple is not known"),
    ("means", 'phases = ["dreaming"]\nmeans', "phases"),
    ('"low: quoted"', '"rather"', "confidence"),
    ("means", 'remedies = [{ kind = "set", variables = { PATH = "/" } }]\nmeans', "same in every build"),
    (
        "means",
        'remedies = [{ kind = "version", component = "nosuch", versions = "<1" }]\nmeans',
        "nosuch is not known",
    ),
    (
        "means",
        'remedies = [{ kind = "version", component = "cmake", versions = "<0" }]\nmeans',
        "no cmake <0",
    ),
    ("means", 'remedies = [{ kind = "version", component = "cmake", versions = "?" }]\nmeans', "range"),
    (
        "means",
        'remedies = [{ kind = "edit", component = "pytorch", '
        'edit = { file = "../a", regex = "x", with = "y", why = "z" } }]\nmeans',
        "points outside the source tree",
    ),
    (
        "means",
        'remedies = [{ kind = "set", variables = { HSA_OVERRIDE_GFX_VERSION = "1" } }]\nmeans',
        "in a build",
    ),
]
"""What stands in a good issue, what stands there instead, and what is said of it."""


def test_what_is_wrong_in_an_issue_is_named(tmp_path: Path, few_issues: Path) -> None:
    for number, (old, new, _) in enumerate(WRONG):
        assert old in ISSUE
        text = ISSUE.replace('"mine"', f'"mine{number}"').replace(old, new, 1)
        write_tree(tmp_path, {f"issues/mine{number}.toml": text})
    found = check_catalog((tmp_path, few_issues))
    said = {
        number: [str(fault) for fault in found if fault.file.name == f"mine{number}.toml"]
        for number in range(len(WRONG))
    }
    missed = [(case, said[number]) for number, case in enumerate(WRONG) if case[2] not in str(said[number])]
    assert missed == []


def test_a_flag_may_have_only_what_a_pattern_names(tmp_path: Path, few_issues: Path) -> None:
    action = 'remedies = [{ kind = "flags", programs = ["cc"], flags = ["-x={what}"] }]'
    named = ISSUE.replace("boom [0-9]+'", "boom (?P<what>[0-9]+)'") + 'filled = { means = "m {what}" }\n'
    assert told(tmp_path / "right", f"{named}{action}\n", few_issues) == ""
    other = f"{named}{action}\n".replace('{what}"]', '{other}"]')
    assert "no pattern names other" in told(tmp_path / "other", other, few_issues)
    assert "no pattern names what" in told(tmp_path / "none", f"{ISSUE}{action}\n", few_issues)


def test_a_line_that_a_program_printed_is_taken_with_its_times(tmp_path: Path, few_issues: Path) -> None:
    quote = 'quotes = [{ line = "[    7.02] boom 7", source = "https://a.example/1", made = true }]\nmeans'
    assert told(tmp_path, ISSUE.replace("means", quote, 1), few_issues) == ""


def test_an_example_that_is_diagnosed_as_another_issue_is_a_fault(tmp_path: Path, few_issues: Path) -> None:
    stale = "ninja: error: manifest 'build.ninja' still dirty after 100 tries"
    other = ISSUE.replace("boom [0-9]+", "after [0-9]+ tries").replace('"boom 1"', f'"{stale}"')
    wide = 'filled = { means = "m {n}" }\n'
    said = told(tmp_path, other.replace("[0-9]+", "(?P<n>[0-9]+)") + wide, few_issues)
    assert f'mine).examples: "{stale}" is diagnosed as ninja-stale' in said


MOST_UNQUOTED = 1
"""Issues that show no line to the letter. It may only be made smaller: the goal is none."""


def test_no_more_issues_than_before_are_written_from_memory() -> None:
    issues = read_issues(Reader((DATA,))).values()
    unquoted = sorted(one.name for one in issues if not one.quotes)
    assert len(unquoted) <= MOST_UNQUOTED, f"give them a quote, with its source: {', '.join(unquoted)}"
    assert len(unquoted) == MOST_UNQUOTED, f"write {len(unquoted)} here: fewer are left"
