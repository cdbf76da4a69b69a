"""A file that comes out of a step's folder is the caller's, and nobody else can write to it any more."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rocbase.errors import SandboxError
from rocwright.sandbox.untrusted import Untrusted, folder
from rocwright.sandbox.untrusted.taking import is_written

STRANGER = 1000


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


@pytest.mark.parametrize("change", ["another file", "a link", "a second name", "a folder"])
def test_a_file_that_is_exchanged_while_it_is_taken_is_refused(
    left: Untrusted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """At the worst moment: after it was looked at, before it is moved."""
    made, other = left.folder / "a.whl", left.folder / "other"
    made.write_text("wheel")

    def exchange(_: int) -> bool:
        if change == "a second name":
            other.hardlink_to(made)
            return False
        made.unlink()
        match change:
            case "another file":
                made.write_text("venom")
            case "a link":
                made.symlink_to("/etc/passwd")
            case "a folder":
                made.mkdir()
        return False

    monkeypatch.setattr(folder, "is_written", exchange)
    with pytest.raises(SandboxError, match=r"torch left a file as a\.whl") as refused:
        left.take("a.whl", tmp_path / "taken")
    assert "replaced while" in refused.value.cause
    assert not (tmp_path / "taken").is_file()


def test_whether_a_file_is_written_is_asked_without_a_trace(tmp_path: Path) -> None:
    """A lease that stayed would end rocwright by a signal when somebody opens the file."""
    path = tmp_path / "file"
    with path.open("wb"), path.open("rb") as reader:
        assert is_written(reader.fileno())
    with path.open("rb") as reader:
        assert not is_written(reader.fileno())
        assert fcntl.fcntl(reader, fcntl.F_GETLEASE) == fcntl.F_UNLCK


def test_a_large_file_is_copied_in_little_memory(left: Untrusted, tmp_path: Path) -> None:
    made = left.folder / "a.whl"
    with made.open("wb") as file:
        file.truncate(128 * 1024**2)
    made.with_name("other").hardlink_to(made)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert left.take("a.whl", tmp_path / "taken").stat().st_size == 128 * 1024**2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_a_file_that_is_copied_has_an_end(left: Untrusted, tmp_path: Path) -> None:
    made = left.folder / "a.whl"
    made.write_bytes(b"x" * 3_000_000)
    made.with_name("other").hardlink_to(made)
    with pytest.raises(SandboxError, match=r"torch left a file as a\.whl"):
        left.take("a.whl", tmp_path / "taken", limit=2_999_999)
    assert not (tmp_path / "taken").exists()
    assert left.take("a.whl", tmp_path / "taken", limit=3_000_000).stat().st_size == 3_000_000


@pytest.mark.parametrize("name", ["a\nb.whl", "\x1b[31m.whl", "\udcff.whl"])
def test_a_file_with_an_odd_name_is_not_taken(left: Untrusted, tmp_path: Path, name: str) -> None:
    Path(left.folder, name).write_text("wheel")
    with pytest.raises(SandboxError, match="torch left a file as ") as refused:
        left.take(name, tmp_path / "taken")
    assert refused.value.message.isprintable()
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


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no second file system")
def test_a_file_is_taken_to_another_disk(left: Untrusted) -> None:
    (left.folder / "a.whl").write_text("wheel")
    with TemporaryDirectory(dir="/dev/shm") as other:
        if Path(other).stat().st_dev == left.folder.stat().st_dev:
            pytest.skip("it is the same file system")
        assert left.take("a.whl", Path(other, "taken")).read_text() == "wheel"
    assert not (left.folder / "a.whl").exists()


def test_a_file_is_taken_from_a_folder_in_the_folder(left: Untrusted, tmp_path: Path) -> None:
    (left.folder / "dist").mkdir()
    (left.folder / "dist" / "a.whl").write_text("wheel")
    assert left.take("dist/a.whl", tmp_path / "taken").read_text() == "wheel"
    with pytest.raises(FileNotFoundError):
        left.take("dist/a.whl", tmp_path / "again")


def test_a_full_disk_is_told_and_nothing_half_written_stays(left: Untrusted, tmp_path: Path) -> None:
    made = left.folder / "a.whl"
    made.write_bytes(os.urandom(3_000_000))
    made.with_name("other").hardlink_to(made)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            left.take("a.whl", tmp_path / "taken")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert not (tmp_path / "taken").exists()
    assert made.exists()
