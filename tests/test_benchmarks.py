"""What keeps the benchmarks honest: the commit of each row, what became worse, and nothing of the tests."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks import machine, results
from benchmarks.results import Entry, Measured, entry, page, worse_than_before

TOP = Path(results.FOLDER).parent


def git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(
        ["git", "-C", folder, *settings, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    for name in ("source.py", "results.json", "RESULTS.md"):
        (tmp_path / name).write_text("as it was\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "begin")
    return tmp_path


def kept(
    values: Sequence[float], last: Entry | None = None, most: float | None = None, least: float | None = None
) -> Entry:
    found = Measured(name="row", what="a row", values=values, unit="s", most=most, least=least)
    return entry(found, "a machine", "0", "0", 0, "abc 2026-01-01", last)


def test_a_row_names_the_commit_that_stood_and_whether_the_tree_was_changed(checkout: Path) -> None:
    stood = machine.commit(checkout)
    assert stood.split()[0] == git(checkout, "rev-parse", "--short=8", "HEAD")
    assert "changed" not in stood
    (checkout / "results.json").write_text("what measuring writes\n")
    assert machine.commit(checkout) == stood
    (checkout / "source.py").write_text("changed\n")
    assert machine.commit(checkout) == f"{stood}, changed"
    git(checkout, "checkout", "source.py")
    (checkout / "new.py").write_text("not in git\n")
    assert machine.commit(checkout) == f"{stood}, changed"
    row = kept([1.0])
    assert row.commit == "abc 2026-01-01"
    assert "| `row` | abc 2026-01-01 |" in page([row])


def test_outside_of_a_checkout_no_commit_is_named(tmp_path: Path) -> None:
    assert machine.commit(tmp_path) == "no commit"


@pytest.mark.parametrize(
    ("before", "now", "most", "least", "worse"),
    [
        ([1.0, 1.0, 5.0], [1.3], 9, None, True),
        ([1.0], [1.2], 9, None, False),
        ([1.0], [0.5], 9, None, False),
        ([10.0], [8.0], None, 1, True),
        ([10.0], [12.5], None, 1, False),
        ([1.0], [9.0], None, None, False),
    ],
)
def test_what_is_more_than_a_fifth_worse_than_before_is_said(
    before: list[float], now: list[float], most: float | None, least: float | None, worse: bool
) -> None:
    row = kept(now, kept(before, None, most, least), most, least)
    told = worse_than_before([row])
    assert bool(told) == worse
    assert ("abc 2026-01-01" in row.before) and all(line in page([row]) for line in told)


def test_a_row_that_measures_another_thing_now_is_not_compared() -> None:
    last = kept([1.0], None, 9)
    other = Measured(name="row", what="another", values=[9.0], unit="s", most=9)
    assert entry(other, "a machine", "0", "0", 0, "def", last).worse == 0


@pytest.mark.parametrize(
    "path", sorted([*TOP.glob("benchmarks/**/*.py"), *TOP.glob("samples/**/*.py")]), ids=str
)
def test_neither_benchmarks_nor_samples_import_tests(path: Path) -> None:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name.partition(".")[0] for one in node.names}
        if isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    assert found.isdisjoint({"tests", "pytest"})


def test_no_row_is_entered_by_hand() -> None:
    assert [row.name for row in results.read().values() if "by hand from" in row.note] == []
