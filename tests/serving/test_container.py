"""The image that a container is made of is the one that was built, whatever another is called."""

from __future__ import annotations

import io
import json
import secrets
import subprocess
import tarfile
from pathlib import Path

import pytest
import zstandard

from rocbase.errors import InputError, SandboxError
from rocbase.files.atomic import sha256_bytes
from rocwright import sandbox
from rocwright.serving import container
from tests.engines import must_work


@pytest.mark.parametrize("place", ["podman", "docker"])
def test_an_engine_that_is_not_there_is_told_with_the_way_without_it(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match=f"{place} is not installed") as refused:
        container.check_works(place)
    assert refused.value.next_step == f"install {place}, or leave --in out: that needs no {place}"


def test_a_daemon_that_does_not_answer_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2\nexit 1\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SandboxError, match="docker does not answer") as refused:
        container.check_works("docker")
    assert "Cannot connect" in refused.value.cause and "leave --in out" in refused.value.next_step


def test_the_host_needs_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bubblewrap alone is on PATH."""
    (tmp_path / "bwrap").symlink_to("/usr/bin/bwrap")
    monkeypatch.setenv("PATH", str(tmp_path))
    container.check_works("host")


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


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_an_image_is_loaded_and_known_by_its_digest(engine: str, tmp_path: Path) -> None:
    must_work(sandbox.probe(sandbox.ENGINES[engine]))
    path, config = _image(tmp_path, secrets.token_hex(8))
    for _ in range(2):
        assert container.load(engine, path, tmp_path / "work") == config
    assert not list(tmp_path.glob("work/*"))
    words = [*container.client(engine), "image", "rm", config]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 0


def test_a_layer_that_is_damaged_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\nexit 1\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    path, _ = _image(tmp_path, "x")
    begin, magic, rest = path.read_bytes().partition(b"\x28\xb5\x2f\xfd")
    path.write_bytes(begin + magic + b"\xff" * 8 + rest[8:])
    with pytest.raises(SandboxError, match=r"layers of the image image\.oci\.tar could not be unpacked"):
        container.load("docker", path, tmp_path / "work")
    assert not list(tmp_path.glob("work/*"))


def _image(folder: Path, text: str) -> tuple[Path, str]:
    """An OCI archive of an image with one file, and the digest of its settings."""
    (folder / "file").write_text(text)
    with tarfile.open(folder / "layer.tar", "w") as layer:
        layer.add(folder / "file", "file")
    plain = (folder / "layer.tar").read_bytes()
    content = zstandard.ZstdCompressor().compress(plain)
    blobs = {sha256_bytes(content): content}

    def blob(told: object) -> dict[str, object]:
        data = json.dumps(told).encode()
        blobs[sha256_bytes(data)] = data
        return {"digest": f"sha256:{sha256_bytes(data)}", "size": len(data)}

    [digest] = [f"sha256:{one}" for one in blobs]
    diff_ids = [f"sha256:{sha256_bytes(plain)}"]
    system = {"architecture": "amd64", "os": "linux", "config": {}}
    config = blob(system | {"rootfs": {"type": "layers", "diff_ids": diff_ids}})
    kind = "application/vnd.oci.image"
    layers = [{"mediaType": f"{kind}.layer.v1.tar+zstd", "digest": digest, "size": len(content)}]
    manifest = blob(
        {"schemaVersion": 2, "config": config | {"mediaType": f"{kind}.config.v1+json"}, "layers": layers}
    )
    index = {"schemaVersion": 2, "manifests": [manifest | {"mediaType": f"{kind}.manifest.v1+json"}]}
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode()}
    with tarfile.open(folder / "image.oci.tar", "w") as layout:
        for name, data in (files | {f"blobs/sha256/{one}": data for one, data in blobs.items()}).items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            layout.addfile(member, io.BytesIO(data))
    return folder / "image.oci.tar", str(config["digest"])


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_a_server_reads_its_model_under_selinux(engine: str) -> None:
    contained = container.Contained(
        name="tiny",
        image="sha256:0",
        entrypoint="/server",
        words=(),
        env={},
        mounts=(),
        devices=(),
        host="127.0.0.1",
        port=8080,
        inside=8080,
    )
    assert "label=disable" in container.command(engine, contained)


def test_a_host_without_bubblewrap_is_told_of_both_ways_to_run_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="bwrap is not installed") as caught:
        container.check_works("host")
    assert "bubblewrap" in caught.value.next_step
    assert caught.value.next_step.endswith("or use --in podman")
