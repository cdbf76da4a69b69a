"""A file that comes out of a step's folder is the caller's, and nobody else can write to it any more."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rocwright.errors import SandboxError
from rocwright.untrusted import Untrusted

STRANGER = 1000


@pytest.fixture
def left(tmp_path: Path) -> Untrusted:
    folder = tmp_path / "left"
    folder.mkdir()
    return Untrusted(folder, "torch")


def give(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, STRANGER, STRANGER)


def test_a_file_is_moved_and_belongs_to_the_caller(left: Untrusted, tmp_path: Path) -> None:
    made = left.folder / "a.whl"
    made.write_text("wheel")
    made.chmod(0o666)
    give(made)
    inode = made.stat().st_ino
    taken = left.take("a.whl", tmp_path / "taken")
    found = taken.stat()
    assert taken.read_text() == "wheel"
    assert (found.st_ino, found.st_uid, stat.S_IMODE(found.st_mode)) == (inode, os.geteuid(), 0o644)
    assert not made.exists()


def test_a_file_of_two_names_is_copied(left: Untrusted, tmp_path: Path) -> None:
    made, other = left.folder / "a.whl", left.folder / "other"
    made.write_text("wheel")
    give(made)
    other.hardlink_to(made)
    taken = left.take("a.whl", tmp_path / "taken")
    other.write_text("poisoned")
    assert taken.read_text() == "wheel"
    assert taken.stat().st_uid == os.geteuid()
    assert not made.exists()


def test_a_file_that_somebody_still_writes_is_copied(left: Untrusted, tmp_path: Path) -> None:
    made = left.folder / "a.whl"
    with made.open("wb", buffering=0) as writer:
        writer.write(b"wheel")
        give(made)
        taken = left.take("a.whl", tmp_path / "taken")
        writer.seek(0)
        writer.write(b"venom")
    assert taken.read_text() == "wheel"


def test_a_file_that_is_copied_has_an_end(left: Untrusted, tmp_path: Path) -> None:
    made = left.folder / "a.whl"
    made.write_bytes(b"x" * 3_000_000)
    made.with_name("other").hardlink_to(made)
    with pytest.raises(SandboxError, match=r"torch left a file as a\.whl"):
        left.take("a.whl", tmp_path / "taken", most=2_999_999)
    assert not (tmp_path / "taken").exists()
    assert left.take("a.whl", tmp_path / "taken", most=3_000_000).stat().st_size == 3_000_000


@pytest.mark.parametrize("name", ["a\nb.whl", "\x1b[31m.whl", "\udcff.whl"])
def test_a_file_with_an_odd_name_is_not_taken(left: Untrusted, tmp_path: Path, name: str) -> None:
    Path(left.folder, name).write_text("wheel")
    with pytest.raises(SandboxError, match="torch left a file as ") as refused:
        left.take(name, tmp_path / "taken")
    assert refused.value.what.isprintable()
    assert "control characters" in refused.value.cause
    assert not (tmp_path / "taken").exists()


def test_what_is_taken_keeps_what_lay_there_before(left: Untrusted, tmp_path: Path) -> None:
    """A copy never overwrites, whatever the name."""
    made = left.folder / "a.whl"
    made.write_text("wheel")
    made.with_name("other").hardlink_to(made)
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(FileExistsError):
        left.take("a.whl", tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"
