"""Benchmarks: the commit of a run, the comparison with an earlier run, the goals, and no import of tests."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks import by_hand, machine, results
from benchmarks.results import Measured, is_worse, table

from rocwright.sandbox.model import Mount, SandboxJob

TOP = Path(results.FOLDER).parent


def git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(
        ["git", "-C", folder, *settings, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def row(values: Sequence[float], most: float | None = None, least: float | None = None) -> Measured:
    return Measured(name="row", what="a row", values=values, unit="s", most=most, least=least)


def test_a_run_names_its_commit_and_whether_the_tree_was_changed(tmp_path: Path) -> None:
    assert machine.commit(tmp_path) == "no commit"
    (tmp_path / "source.py").write_text("as it was\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "begin")
    commit = machine.commit(tmp_path)
    assert commit.split()[0] == git(tmp_path, "rev-parse", "--short=8", "HEAD")
    assert "changed" not in commit
    (tmp_path / "new.py").write_text("not in git\n")
    assert machine.commit(tmp_path) == f"{commit}, changed"


@pytest.mark.parametrize(
    ("earlier", "now", "most", "least", "worse"),
    [
        ([1.0, 1.0, 5.0], [1.3], 9, None, True),
        ([1.0], [1.2], 9, None, False),
        ([1.0], [0.5], 9, None, False),
        ([10.0], [8.0], None, 1, True),
        ([10.0], [12.5], None, 1, False),
    ],
)
def test_a_figure_more_than_a_fifth_worse_than_in_the_file_is_marked(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    earlier: list[float],
    now: list[float],
    most: float | None,
    least: float | None,
    worse: bool,
) -> None:
    monkeypatch.setattr(results, "OUT", tmp_path)
    results.write([row(earlier, most, least)], {"commit": "abc"}, {})
    read = results.read(tmp_path / "results.json")
    current = row(now, most, least)
    assert is_worse(current, read) == worse
    assert ("WORSE" in table([current], read)) == worse
    page = results.write([current], {"commit": "def"}, read).read_text()
    assert ("WORSE" in page) == worse
    assert "commit: def" in page


def test_a_row_that_measures_another_thing_now_is_not_compared() -> None:
    other = Measured(name="row", what="another", values=[9.0], unit="s", most=9)
    assert "not comparable" in table([other], {"row": row([1.0], 9)})
    assert not is_worse(other, {"row": row([1.0], 9)})


def test_a_row_without_a_goal_is_an_error() -> None:
    with pytest.raises(AssertionError, match="no goal"):
        table([row([1.0])], {})


def test_neither_benchmarks_nor_samples_import_tests() -> None:
    paths = [*TOP.glob("benchmarks/**/*.py"), *TOP.glob("samples/**/*.py")]
    assert paths
    wrong = []
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            wrong += [(path, name) for name in names if name.partition(".")[0] in ("tests", "pytest")]
    assert wrong == []


def test_commands_typed_by_hand_have_the_inputs_and_the_wheels_of_the_step(tmp_path: Path) -> None:
    (tmp_path / "root" / "usr").mkdir(parents=True)
    (tmp_path / "root" / "in").mkdir()
    taken = Mount(source=tmp_path / "a.whl", target="/in/pip/a.whl")
    cache = Mount(source=tmp_path, target="/ccache", writable=True)
    job = SandboxJob(
        root=tmp_path / "root", argv=("/bin/sh", "-c", "ninja"), env={"A": "1"}, workdir="/build/src",
        mounts=(taken, cache), memory=None, seconds=1,
    )  # fmt: skip
    typed = by_hand.script(job, tree=tmp_path / "t", installs="pip a", folder=tmp_path)
    places, tree, *sandboxes = typed.splitlines()
    assert places.startswith("mkdir -p ") and tree.startswith("tar ")
    assert [one.partition(" -- ")[2] for one in sandboxes] == ["/bin/sh -eu -c 'pip a'", "/bin/sh -c ninja"]
    for one in sandboxes:
        assert f"--ro-bind {taken.source} /in/pip/a.whl" in one
        assert f"--ro-bind {tmp_path}/root/usr /usr" in one
        assert f"{tmp_path}/root/in" not in one
        assert "--setenv A 1" in one
