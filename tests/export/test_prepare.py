"""What `prepare.sh` fetches is checked by its hash, whatever a host sends: its own functions, run by sh."""

from __future__ import annotations

import os
import shutil
import subprocess
from hashlib import sha256, sha512
from pathlib import Path

import pytest
from tests.sources.conftest import Index, index, make_repository
from tests.sources.test_sdist import files, sdist

from rocwheel_samples.trees import write_tree
from rocwright.export.prepare import _SDIST
from rocwright.export.templates import template
from rocwright.model.steps import GitOrigin
from rocwright.sources.archive import unpack
from rocwright.sources.git import pack_commit

__all__ = ["index"]

DATA = b"an archive" * 1000

needs_curl = pytest.mark.skipif(
    shutil.which("curl") is None and os.environ.get("CI") != "true", reason="curl is not installed"
)


def prepare(folder: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """Run lines of an exported script."""
    text = template("prepare.sh").replace("@EPOCH@", "0") + "\n".join(lines) + "\n"
    folder.mkdir(exist_ok=True)
    (folder / "prepare.sh").write_text(text)
    return subprocess.run(
        ["sh", str(folder / "prepare.sh")], capture_output=True, text=True, check=False, cwd="/"
    )


@needs_curl
@pytest.mark.parametrize("kind", ["sha256", "sha512"])
def test_a_file_at_an_address_is_fetched_once_and_checked(index: Index, tmp_path: Path, kind: str) -> None:
    index.files["x"] = {"x.tar.gz": DATA}
    digest = {"sha256": sha256, "sha512": sha512}[kind](DATA).hexdigest()
    lines = f"fetched here x.tar.gz {index.url}/files/x.tar.gz", f"hashed here/x.tar.gz {kind} {digest}"
    done = prepare(tmp_path / "export", *lines)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "export/here").iterdir()] == ["x.tar.gz"]
    index.files.clear()
    assert prepare(tmp_path / "export", *lines).returncode == 0


@needs_curl
def test_a_file_that_is_another_ends_the_script_and_goes(index: Index, tmp_path: Path) -> None:
    index.files["x"] = {"x.tar.gz": DATA}
    index.wrong = b"something else"
    lines = f"fetched here x.tar.gz {index.url}/files/x.tar.gz", f"hashed here/x.tar.gz sha256 {'0' * 64}"
    done = prepare(tmp_path / "export", *lines, "touch after")
    assert done.returncode == 4
    assert "does not have the sha256" in done.stderr
    assert not (tmp_path / "export/after").exists()
    assert list((tmp_path / "export/here").iterdir()) == []


@needs_curl
def test_a_file_that_breaks_off_is_never_left_as_if_whole(index: Index, tmp_path: Path) -> None:
    index.files["x"] = {"x.tar.gz": DATA}
    index.truncate = True
    done = prepare(tmp_path / "export", f"fetched here x.tar.gz {index.url}/files/x.tar.gz")
    assert done.returncode != 0
    assert list((tmp_path / "export/here").iterdir()) == []


def test_a_source_distribution_of_another_index_becomes_a_tree(index: Index, tmp_path: Path) -> None:
    data = sdist(**files())
    index.files["some-thing"] = {"some-thing-1.0.tar.gz": data}
    index.form = "html"
    folder = tmp_path / "export"
    write = folder / "sources/python-some-thing/sha256"
    write.parent.mkdir(parents=True)
    write.write_text(f"{sha256(data).hexdigest()}  some-thing-1.0.tar.gz\n")
    (folder / "sources/sdist.py").write_text(_SDIST)
    done = prepare(
        folder,
        f"sdist python-some-thing some-thing 1.0 {index.url}/simple",
        "checked sources/python-some-thing",
        "unpacked python-some-thing ''",
        "packed python-some-thing",
    )
    assert done.returncode == 0, done.stderr
    listed = subprocess.run(
        ["tar", "-tf", str(folder / "trees/python-some-thing.tar")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"./PKG-INFO", "./setup.py"} <= set(listed.stdout.split())


def test_folders_and_files_of_a_commit_are_those_that_a_build_has(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "upstream")
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.git("config", "uploadpack.allowAnySHA1InWant", "true")
    write_tree(
        repository.path, {"project/a.c": "a", "project/inner/b.c": "b", "other/c.c": "c", "LICENSE": "MIT"}
    )
    repository.git("add", ".")
    commit, url = repository.commit("setup.py", "pass\n"), f"file://{repository.path}"
    pin = pack_commit(GitOrigin(url=url, commit=commit, paths=("project", "LICENSE")), tmp_path / "pack")
    unpack(tmp_path / "pack" / pin.filename, tmp_path / "built", wrapped=False)
    done = prepare(tmp_path / "export", f"git_tree project {url} {commit} 'project LICENSE' ''")
    assert done.returncode == 0, done.stderr
    unpack(tmp_path / "export/sources/project/tree.tar", tmp_path / "exported", wrapped=False)
    trees = [
        {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "built", tmp_path / "exported")
    ]
    assert trees[0] == trees[1] == {"project/a.c": "a", "project/inner/b.c": "b", "LICENSE": "MIT"}
