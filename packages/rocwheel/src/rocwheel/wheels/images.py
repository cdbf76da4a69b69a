"""The files of a container image that lies on disk as an OCI image layout, as a container would see them.

Source: OCI image-spec 1.1: image-layout.md, manifest.md, layer.md (whiteouts).
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from rocbase.errors import CheckError
from rocbase.folders.links import is_plain_file
from rocwheel.wheels.archives import tar_entries
from rocwheel.wheels.source import ByteSource, FileSource

MOST_JSON_BYTES = 4 * 1024 * 1024
MOST_MANIFESTS = 1000
MOST_LAYERS = 1000

_DIGEST = re.compile(r"(sha256|sha512):[0-9a-f]{64,128}")
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"


def image_files(
    folder: Path, opened: Callable[[Path, str], FileSource]
) -> Iterator[tuple[str, tarfile.TarInfo, ByteSource]]:
    """The regular files of each image, by path; where there are several images, below the digest of each.

    Layers are read from the topmost down; what a layer above replaces or removes is left out. Each file is
    to be read before the next is asked for. `opened` opens a file of the layout by path and name.
    """
    layout = _Layout(folder, opened)
    images = list(layout.images(layout.json("index.json"), depth=0))
    for digest, layers in images:
        prefix = f"{digest[7:19]}/" if len(images) > 1 else ""
        hidden: set[str] = set()
        opaque: set[str] = set()
        for layer in reversed(layers):
            hidden_here: set[str] = set()
            opaque_here: set[str] = set()
            for info, content in tar_entries(layout.blob(layer)):
                path = PurePosixPath(info.name.removeprefix("./"))
                if path.name == _OPAQUE:
                    opaque_here.add(str(path.parent))
                elif path.name.startswith(_WHITEOUT):
                    hidden_here.add(str(path.with_name(path.name.removeprefix(_WHITEOUT))))
                elif not _is_hidden(path, hidden, opaque):
                    if not info.isdir():
                        hidden_here.add(str(path))
                    if content is not None:
                        yield f"{prefix}{path}", info, content
            hidden |= hidden_here
            opaque |= opaque_here


def _is_hidden(path: PurePosixPath, hidden: set[str], opaque: set[str]) -> bool:
    parents = [str(parent) for parent in path.parents]
    return str(path) in hidden or any(parent in hidden or parent in opaque for parent in parents)


class _Layout:
    def __init__(self, folder: Path, opened: Callable[[Path, str], FileSource]) -> None:
        self._folder = folder
        self._opened = opened

    def images(self, index: dict[str, Any], depth: int) -> Iterator[tuple[str, list[str]]]:
        """Each image's digest and the digests of its layers, the lowest first."""
        manifests = index.get("manifests")
        if not isinstance(manifests, list) or len(manifests) > MOST_MANIFESTS or depth > 3:
            raise self._wrong("its index names no image, or too many")
        for descriptor in manifests:
            digest = self._digest(descriptor)
            manifest = self.json(self._path(digest))
            if "manifests" in manifest:
                yield from self.images(manifest, depth + 1)
                continue
            layers = manifest.get("layers", [])
            if not isinstance(layers, list) or len(layers) > MOST_LAYERS:
                raise self._wrong(f"the manifest {digest} names no layers")
            yield digest, [self._digest(layer) for layer in layers]

    def json(self, name: str) -> dict[str, Any]:
        source = self._open(name)
        if source.size > MOST_JSON_BYTES:
            raise self._wrong(f"{name} has {source.size:,} bytes")
        try:
            data = json.loads(source.read_at(0, source.size))
        except (ValueError, RecursionError) as error:
            raise self._wrong(f"{name} is not JSON: {error}") from error
        if not isinstance(data, dict):
            raise self._wrong(f"{name} does not describe an image")
        return data

    def blob(self, digest: str) -> ByteSource:
        return self._open(self._path(digest))

    def _open(self, name: str) -> FileSource:
        path = self._folder / name
        if not is_plain_file(path, self._folder):
            raise self._wrong(f"{name} is missing, or is a link")
        return self._opened(path, name)

    def _digest(self, descriptor: object) -> str:
        digest = descriptor.get("digest") if isinstance(descriptor, dict) else None
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise self._wrong("a blob has no digest")
        return digest

    def _path(self, digest: str) -> str:
        return f"blobs/{digest.replace(':', '/')}"

    def _wrong(self, reason: str) -> CheckError:
        return CheckError(
            f"cannot read {self._folder.name} as an image layout: {reason}",
            cause="it is incomplete, damaged, or deliberately malformed",
            next_step="copy the image again: skopeo copy docker://... oci:FOLDER",
            subject=str(self._folder),
        )
