"""What keeps the benchmarks honest: the commit of each row, what became worse, and nothing of the tests."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks import by_hand, machine, measure, results
from benchmarks.results import Entry, Measured, entry, page, worse_than_before
from benchmarks.rows import first_commands

from rocwright.sandbox.model import Job, Mount

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


def test_commands_typed_by_hand_have_the_inputs_and_the_wheels_of_the_step(tmp_path: Path) -> None:
    (tmp_path / "root" / "usr").mkdir(parents=True)
    (tmp_path / "root" / "in").mkdir()
    taken = Mount(source=tmp_path / "a.whl", target="/in/pip/a.whl")
    cache = Mount(source=tmp_path, target="/ccache", writable=True)
    job = Job(
        root=tmp_path / "root", argv=("/bin/sh", "-c", "ninja"), env={"A": "1"}, workdir="/build/src",
        mounts=(taken, cache), memory=None, seconds=1,
    )  # fmt: skip
    typed = by_hand.script(job, tree=tmp_path / "t", installs="pip a", env={"B": "2"}, folder=tmp_path)
    places, tree, *sandboxes = typed.splitlines()
    assert places.startswith("mkdir -p ") and tree.startswith("tar ")
    assert [one.partition(" -- ")[2] for one in sandboxes] == ["/bin/sh -eu -c 'pip a'", "/bin/sh -c ninja"]
    for one in sandboxes:
        assert f"--ro-bind {taken.source} /in/pip/a.whl" in one
        assert f"--ro-bind {tmp_path}/root/usr /usr" in one
        assert f"{tmp_path}/root/in" not in one
        assert "--setenv A 1 --setenv B 2" in one


def test_only_what_was_compiled_counts_for_the_first_commands_of_pytorch(tmp_path: Path) -> None:
    assert not first_commands._enough(tmp_path)
    log = tmp_path / first_commands.LOG
    log.parent.mkdir()
    copied = [f"1\t2\t3\tinclude/{number}.h\tabc\n" for number in range(first_commands.COMPILED)]
    compiled = [f"1\t2\t3\tlib/{number}.cpp.o\tabc\n" for number in range(first_commands.COMPILED)]
    log.write_text("".join(["# ninja log v7\n", *copied, *compiled[1:]]))
    assert not first_commands._enough(tmp_path)
    log.write_text("".join(["# ninja log v7\n", *copied, *compiled]))
    assert first_commands._enough(tmp_path)


def test_what_is_ended_early_is_timed_and_what_ends_by_itself_is_told(tmp_path: Path) -> None:
    there = tmp_path / "there"
    script = f"touch {there}; sleep 600"
    took = measure.until(there.exists, ["/bin/sh", "-c", script], log=tmp_path / "log")
    assert 0 < took.wall < 600
    with pytest.raises(measure.BenchError, match=r"ended too early, with 3:\nwhy"):
        measure.until(lambda: False, ["/bin/sh", "-c", "echo why; exit 3"], log=tmp_path / "log")
