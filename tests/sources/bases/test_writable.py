"""The root file system of an image, as its packages left it."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest
import zstandard

from rocbase.errors import SandboxError
from rocbase.files.bounds import Bound
from rocwright.sources.bases import writable
from rocwright.sources.bases.namespace import give
from rocwright.sources.bases.writable import WritableRoot


@pytest.fixture
def root(tmp_path: Path) -> WritableRoot:
    folder = tmp_path / "root"
    (folder / "etc").mkdir(parents=True)
    (folder / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\n")
    return WritableRoot(folder, 0, print)


def test_what_packages_wrote_is_packed_as_it_is(root: WritableRoot, tmp_path: Path) -> None:
    (root.path / "etc/link").symlink_to("/etc/shadow")
    give(tmp_path, *tmp_path.rglob("*"))
    content = root.pack(tmp_path / "root.tar.zst")
    data = zstandard.ZstdDecompressor().stream_reader((tmp_path / "root.tar.zst").open("rb")).read()
    with tarfile.open(fileobj=io.BytesIO(data)) as packed:
        assert packed.getmember("./etc/link").linkname == "/etc/shadow"
    assert content == hashlib.sha256(data).hexdigest()


def test_a_root_that_stands_for_more_than_it_takes_is_refused(
    root: WritableRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writable, "TREES", Bound(size=2**20))
    with (root.path / "etc/hole").open("wb") as file:
        file.truncate(2**33)
    give(tmp_path, *tmp_path.rglob("*"))
    with pytest.raises(SandboxError, match="more than any root file system holds"):
        root.pack(tmp_path / "root.tar.zst")
