"""A cloned project whose folders are links: nothing is written behind them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocbase.folders.links import through_no_link
from rocwheel_samples.wheel import make_wheel
from rocwright.export.model import ExportFile
from rocwright.export.write import write
from rocwright.provenance.layout import write_index
from rocwright.sources.patching.history import UserCommit
from rocwright.sources.patching.save import save_changes

FILES = {"Containerfile": ExportFile(b"FROM x\n"), "base/run.sh": ExportFile(b"exit\n", executable=True)}


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user, beside the project that they stand in."""
    for name in ("elsewhere", "project"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "elsewhere"


@pytest.mark.parametrize("place", ["export", "export/kind", "export/kind/base"])
def test_an_export_writes_nothing_behind_a_link(elsewhere: Path, place: str) -> None:
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    Path(place).symlink_to(elsewhere)
    with pytest.raises(InputError, match=f"{place} is a link"):
        write(FILES, Path("export/kind"), top=Path())
    assert list(elsewhere.iterdir()) == []
    assert not Path("export/kind/Containerfile").exists()


def test_a_folder_that_the_user_names_may_lie_behind_a_link(elsewhere: Path) -> None:
    Path("mine").symlink_to(elsewhere)
    write(FILES, Path("mine/here"))
    assert (elsewhere / "here/base/run.sh").stat().st_mode & 0o111


def test_a_pipe_in_place_of_a_file_is_another_file(elsewhere: Path) -> None:
    Path("export/kind").mkdir(parents=True)
    os.mkfifo("export/kind/Containerfile")
    with pytest.raises(InputError, match="already has Containerfile"):
        write(FILES, Path("export/kind"), top=Path())


def test_only_what_lies_below_the_top_may_not_be_a_link(elsewhere: Path) -> None:
    top = Path("outputs")
    top.symlink_to(elsewhere)
    assert through_no_link(top / "a/b", top) == top / "a/b"
    (elsewhere / "a").symlink_to(elsewhere)
    with pytest.raises(InputError, match="outputs/a is a link"):
        through_no_link(top / "a/b", top)


@pytest.mark.parametrize("place", ["patches", "patches/hello", "edits", "edits/hello.toml"])
def test_no_edit_is_saved_behind_a_link(elsewhere: Path, place: str) -> None:
    Path(place).parent.mkdir(exist_ok=True)
    Path(place).symlink_to(elsewhere)
    change = UserCommit("subject", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
    with pytest.raises(InputError, match=f"{place} is a link"):
        save_changes([change], "hello", "1.0", "", Path(), "")
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/etc/hosts")])
@pytest.mark.parametrize("place", ["index.html", "a/index.html", "a/a-1-py3-none-any.whl", "a/b.whl"])
def test_an_index_is_written_in_place_of_links_and_pipes(
    elsewhere: Path, place: str, make: Callable[[Path], None]
) -> None:
    wheel = make_wheel(elsewhere, "a", "1")
    content = wheel.read_bytes()
    Path("simple/a").mkdir(parents=True)
    make(Path("simple") / place)
    write_index(Path(), [wheel])
    assert wheel.read_bytes() == content == Path("simple/a", wheel.name).read_bytes()
    rows = Path("simple/a/index.html").read_text()
    assert wheel.name in rows and "b.whl" not in rows
    assert Path("simple/index.html").read_text().count("<a ") == 1
