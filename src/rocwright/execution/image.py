"""An OCI image layout, packed by rocwright itself: the root file system, and one layer on top of it."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from rocbase.files.atomic import sha256_bytes, sha256_file
from rocbase.files.bounds import TREES
from rocbase.files.unpacking import Meter, Unpacked
from rocbase.model import canonical_json
from rocwright.execution.context import ActionResult, Context
from rocwright.model.step_environment import EPOCH
from rocwright.model.steps import ImageAction
from rocwright.sources.archive import tar_add, unpack, walk
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.model import verified

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER_GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"
LAYER_ZSTD = "application/vnd.oci.image.layer.v1.tar+zstd"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFile:
    """A layer that is packed: its media type, its file, and the digest of what it holds, uncompressed."""

    media: str
    path: Path
    sha256: str
    content: str


def run_image(action: ImageAction, context: Context) -> ActionResult:
    """Write `NAME.oci.tar`, an OCI image layout that podman, buildah and skopeo read (`oci-archive:`)."""
    root, archive = context.inputs["root"][0], context.inputs["archive"][0]
    context.on_line("image: layer of the root file system")
    layers = [root_layer(verified(context.store, root.sha256), root.sha256, root.content)]
    context.on_line(f"image: layer of {archive.filename} under {action.prefix}")
    top = context.workspace.scratch / "top"
    # a step made the archive: nothing of it is safe before our unpacker has seen it
    inside = context.workspace.scratch / "inside"
    unpack(verified(context.store, archive.sha256), inside, filename=archive.filename, git=True)
    _relocate(inside, action.prefix, top)
    remove_tree(inside)
    layers.append(gzip_layer(top))
    target = context.workspace.out / f"{action.name}.oci.tar"
    write_image(action, layers, target, context.workspace.scratch)
    return ActionResult(outputs={"image": target})


def root_layer(path: Path, sha256: str, content: str = "") -> LayerFile:
    """The packed root file system as a layer; `content` is the digest of its tar, where that is known."""
    return LayerFile(
        media=LAYER_ZSTD, path=path, sha256=sha256, content=content or _uncompressed_digest(path)
    )


def gzip_layer(path: Path) -> LayerFile:
    """A tar that was packed with gzip, as a layer."""
    return LayerFile(
        media=LAYER_GZIP, path=path, sha256=sha256_file(path), content=_uncompressed_digest(path)
    )


def write_image(action: ImageAction, layers: Sequence[LayerFile], target: Path, scratch: Path) -> None:
    """Pack an OCI image layout of these layers, the lowest first, to `target`."""
    layout = scratch / "layout"
    blobs = layout / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    for layer in layers:
        (blobs / layer.sha256).symlink_to(layer.path.absolute())
    config = _write(blobs, CONFIG, _config(action, [layer.content for layer in layers]))
    manifest = _write(
        blobs,
        MANIFEST,
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": [_layer(layer.media, layer.sha256, layer.path.stat().st_size) for layer in layers],
            "annotations": action.labels,
        },
    )
    manifest |= {"annotations": {"org.opencontainers.image.ref.name": action.reference}}
    manifest |= {"platform": {"architecture": action.architecture, "os": "linux"}}
    (layout / "index.json").write_bytes(
        canonical_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest]})
    )
    (layout / "oci-layout").write_bytes(canonical_json({"imageLayoutVersion": "1.0.0"}))
    _pack(layout, target)
    shutil.rmtree(layout)


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
    hasher = sha256()
    with path.open("rb") as file:
        for piece in Unpacked(file, Meter(TREES, 0)).pieces():
            hasher.update(piece)
    return hasher.hexdigest()


def _relocate(tree: Path, prefix: str, target: Path) -> None:
    """Write what lies in a folder as a layer that has it under `prefix`."""
    inside = PurePosixPath(prefix.strip("/"))
    with (
        target.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as layer,
    ):
        for folder in reversed([inside, *inside.parents][:-1]):
            layer.addfile(_folder(str(folder)))
        for path in walk(tree):
            tar_add(layer, path, str(inside / path.relative_to(tree)), EPOCH)


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
