"""Files that are hashed once."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any

import pytest

from rocbase.files import hashes
from rocbase.files.atomic import sha256_bytes
from rocbase.files.hashes import Hashes


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was read for it. Files are old at once."""
    found: list[str] = []
    real = hashlib.file_digest

    def noted(file: Any, name: str) -> object:
        digest = real(file, name)
        found.append(digest.hexdigest())
        return digest

    monkeypatch.setattr(hashlib, "file_digest", noted)
    monkeypatch.setattr(hashes, "SETTLED", -1)
    return found


def ask(known: Hashes, path: Path) -> str:
    with path.open("rb") as file:
        return known.of(file)


def test_a_file_is_read_again_only_where_it_changed(tmp_path: Path, read: list[str]) -> None:
    path, known = tmp_path / "file", Hashes()
    path.write_bytes(b"one")
    told = path.stat()
    assert [ask(known, path) for _ in range(3)] == [sha256_bytes(b"one")] * 3
    assert len(read) == 1
    # the same size and the same time, as somebody would set it who does not want to be seen
    time.sleep(0.02)
    path.write_bytes(b"two")
    os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))
    assert ask(known, path) == sha256_bytes(b"two")
    other = tmp_path / "other"
    other.write_bytes(b"six")
    os.utime(other, ns=(told.st_atime_ns, told.st_mtime_ns))
    other.replace(path)
    assert ask(known, path) == sha256_bytes(b"six")
    assert len(read) == 3


def test_what_changed_a_moment_ago_is_not_believed(
    tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashes, "SETTLED", 3600)
    path, known = tmp_path / "file", Hashes()
    path.write_bytes(b"one")
    assert ask(known, path) == ask(known, path)
    assert len(read) == 2


def test_the_memory_is_bounded(tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashes, "MOST_KEPT", 2)
    known = Hashes()
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.write_text(path.name)
    for path in (*paths, paths[2], paths[1], paths[0]):
        ask(known, path)
    assert len(read) == 4
