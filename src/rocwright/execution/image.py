"""An OCI image layout, packed by rocwright itself: the root file system, and one layer on top of it."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
from copy import copy
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import zstandard

from rocwheel.files.atomic import CHUNK, sha256_bytes, sha256_file
from rocwheel.model import canonical_json
from rocwright.execution.context import ActionResult, Context
from rocwright.model.step_environment import EPOCH
from rocwright.model.steps import ImageAction

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER_GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"
LAYER_ZSTD = "application/vnd.oci.image.layer.v1.tar+zstd"


def run_image(action: ImageAction, context: Context) -> ActionResult:
    """Write `NAME.oci.tar`, an OCI image layout that podman, buildah and skopeo read (`oci-archive:`)."""
    root, archive = context.inputs["root"][0], context.inputs["archive"][0]
    layout = context.workspace.scratch / "layout"
    blobs = layout / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    base = context.store.verified(root.sha256)
    (blobs / root.sha256).symlink_to(base)
    context.on_line("image: layer of the root file system")
    layers = [_layer(LAYER_ZSTD, root.sha256, base.stat().st_size)]
    diff_ids = [root.content or _uncompressed_digest(base)]
    context.on_line(f"image: layer of {archive.filename} under {action.prefix}")
    top = blobs / "top"
    _relocate(context.store.verified(archive.sha256), action.prefix, top)
    layers.append(_layer(LAYER_GZIP, sha256_file(top), top.stat().st_size))
    with gzip.open(top) as file:
        diff_ids.append(_digest(file))
    top.rename(blobs / sha256_file(top))
    config = _write(blobs, CONFIG, _config(action, diff_ids))
    manifest = _write(
        blobs,
        MANIFEST,
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": layers,
            "annotations": action.labels,
        },
    )
    manifest |= {"annotations": {"org.opencontainers.image.ref.name": action.reference}}
    manifest |= {"platform": {"architecture": action.architecture, "os": "linux"}}
    (layout / "index.json").write_bytes(
        canonical_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest]})
    )
    (layout / "oci-layout").write_bytes(canonical_json({"imageLayoutVersion": "1.0.0"}))
    target = context.workspace.out / f"{action.name}.oci.tar"
    _pack(layout, target)
    shutil.rmtree(layout)
    return ActionResult(outputs={"image": target})


def _config(action: ImageAction, diff_ids: list[str]) -> dict[str, Any]:
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"} | action.env
    return {
        "created": datetime.fromtimestamp(EPOCH, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "architecture": action.architecture,
        "os": "linux",
        "config": {
            "Env": [f"{name}={value}" for name, value in sorted(env.items())],
            "Entrypoint": list(action.entrypoint),
            "WorkingDir": "/",
            "Labels": action.labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in diff_ids]},
        "history": [{"created_by": "rocwright: root file system"}, {"created_by": "rocwright: binaries"}],
    }


def _layer(media: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": media, "digest": f"sha256:{digest}", "size": size}


def _write(blobs: Path, media: str, data: dict[str, Any]) -> dict[str, Any]:
    raw = json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
    digest = sha256_bytes(raw)
    (blobs / digest).write_bytes(raw)
    return _layer(media, digest, len(raw))


def _uncompressed_digest(path: Path) -> str:
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as plain:
        return _digest(plain)


def _digest(file: Any) -> str:
    hasher = sha256()
    while chunk := file.read(CHUNK):
        hasher.update(chunk)
    return hasher.hexdigest()


def _relocate(archive: Path, prefix: str, target: Path) -> None:
    """The archive's members under `prefix`, without the folder that wraps them, as a layer."""
    inside = prefix.strip("/")
    with (
        target.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as layer,
        tarfile.open(archive, mode="r|*") as source,
    ):
        made: set[str] = set()
        for member in source:
            name = member.name.removeprefix("./").partition("/")[2]
            path = f"{inside}/{name}" if name else inside
            for parent in reversed(Path(path).parents[:-1]):
                if str(parent) not in made:
                    made.add(str(parent))
                    layer.addfile(_folder(str(parent)))
            if str(path) in made:
                continue
            made.add(str(path))
            body: IO[bytes] | None = source.extractfile(member) if member.isreg() else None
            layer.addfile(_plain(member, path), body)


def _folder(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    return _plain(info)


def _plain(info: tarfile.TarInfo, name: str = "") -> tarfile.TarInfo:
    plain = copy(info)
    plain.name = name or info.name
    plain.uid = plain.gid = 0
    plain.uname = plain.gname = ""
    plain.mtime = EPOCH
    return plain


def _pack(layout: Path, target: Path) -> None:
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT, dereference=True) as tar:
        for path in sorted(layout.rglob("*")):
            info = _plain(tar.gettarinfo(path, str(path.relative_to(layout))))
            info.mode = 0o755 if info.isdir() else 0o644
            if info.isreg():
                with path.open("rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)
