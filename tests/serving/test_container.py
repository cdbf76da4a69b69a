"""The image that a container is made of is the one that was built, whatever another is called."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from rocwheel.errors import SandboxError
from rocwright.serving import container


def _archive(path: Path, **files: object) -> Path:
    with tarfile.open(path, "w") as layout:
        for name, content in files.items():
            data = json.dumps(content).encode()
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size = len(data)
            layout.addfile(member, io.BytesIO(data))
    return path


def test_an_image_is_named_by_the_digests_of_its_settings_and_its_manifest(tmp_path: Path) -> None:
    path = _archive(
        tmp_path / "image.oci.tar",
        **{"index.json": {"manifests": [{"digest": "sha256:aa"}]}},
        blobs__sha256__aa={"config": {"digest": "sha256:bb"}},
    )
    assert container.digests(path) == ("sha256:bb", "sha256:aa")


@pytest.mark.parametrize(
    "index", [{}, [], {"manifests": []}, {"manifests": [{"digest": "sha256:none"}]}, {"manifests": [{}]}]
)
def test_an_archive_of_another_shape_is_refused(tmp_path: Path, index: object) -> None:
    with pytest.raises(SandboxError, match="no archive of an image"):
        container.digests(_archive(tmp_path / "image.oci.tar", **{"index.json": index}))


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "image.oci.tar").write_bytes(b"text")
    with pytest.raises(SandboxError):
        container.digests(tmp_path / "image.oci.tar")
