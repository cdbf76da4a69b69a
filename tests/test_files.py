"""The one atomic writer and the one hasher."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from pathlib import Path

import pytest

from rocwright.files import atomic_file, sha256_bytes, sha256_file, write_atomic
from tests.durable import watch


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
