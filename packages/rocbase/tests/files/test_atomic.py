"""The one atomic writer and the one hasher."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from rocbase.files.atomic import atomic_file, is_git, make_private, sha256_bytes, sha256_file, write_atomic
from rocwheel_samples.durable import watch
from rocwheel_samples.tables import each


def test_a_file_is_written_with_the_folders_above_it(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a/b/c", "é")
    assert (tmp_path / "a/b/c").read_text() == "é"
    assert (tmp_path / "a/b/c").stat().st_mode & 0o777 == 0o644


def test_a_file_whose_writing_fails_stays_as_it_was_and_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, "before")

    def half() -> None:
        with atomic_file(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as caught, atomic_file(tmp_path / "file"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.filename == str(tmp_path / "file")


def test_a_kill_in_the_middle_of_writing_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    texts = [letter * 2_000_000 for letter in ("a", "b")]
    write_atomic(path, texts[0])
    for number in range(15):
        child = os.fork()
        if child == 0:
            while True:
                write_atomic(path, texts[1])
                write_atomic(path, texts[0])
        time.sleep(0.003 * number)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert path.read_text() in texts


def test_bytes_and_files_are_hashed_alike(tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "file").write_bytes(data)
    assert sha256_file(tmp_path / "file") == sha256_bytes(data) == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_file_is_safe_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    order = watch(monkeypatch)
    write_atomic(tmp_path / "file", "x" * size)
    order.check(tmp_path / "file", folder=False)


def test_a_file_grows_in_the_folder_where_it_will_lie(tmp_path: Path) -> None:
    """Between two file systems there is no rename."""
    with atomic_file(tmp_path / "file") as file:
        [growing] = tmp_path.iterdir()
        assert growing.stat().st_ino == os.fstat(file.fileno()).st_ino
        # a kill leaves it behind: hidden, and named after what it was to be
        assert growing.name.startswith(".file.")
    assert (tmp_path / "file").stat().st_mode & 0o7777 == 0o644


def test_why_writing_failed_is_told_also_where_its_folder_went_meanwhile(tmp_path: Path) -> None:
    def half() -> None:
        with atomic_file(tmp_path / "folder/file") as file:
            shutil.rmtree(tmp_path / "folder")
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()


@each("name", [".git", ".GIT", ".git.", ".git ", ".Git. .", "git~1", "GIT~1"])
def test_what_git_takes_for_its_folder_on_some_file_system_is_known(name: str) -> None:
    assert is_git(name)


@each("name", ["git", "..git", " .git", ".gitignore", "git~2", ".github"])
def test_what_git_takes_for_a_file_is_none_of_its_folders(name: str) -> None:
    assert not is_git(name)


@pytest.mark.parametrize(
    ("before", "after"), [(0o755, 0o700), (0o777, 0o700), (0o640, 0o600), (0o1755, 0o700)]
)
def test_what_others_may_do_with_ones_own_file_is_taken_away(tmp_path: Path, before: int, after: int) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(before)
    make_private(path, 0o700)
    assert path.stat().st_mode & 0o7777 == after


def test_a_file_that_is_closed_already_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o600)
    before = path.stat().st_ctime_ns
    time.sleep(0.02)
    make_private(path, 0o700)
    assert path.stat().st_ctime_ns == before


def test_a_link_and_what_is_missing_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(0o644)
    (tmp_path / "link").symlink_to("file")
    make_private(tmp_path / "link", 0o600)
    make_private(tmp_path / "missing", 0o600)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_file_of_another_user_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o644)
    os.chown(path, 1000, 1000)
    make_private(path, 0o600)
    assert path.stat().st_mode & 0o777 == 0o644
