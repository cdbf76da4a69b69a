"""The layers of an image, laid over each other and packed as one root file system, the same way everywhere.

What is read is a folder as skopeo fills it (`dir:`): manifest.json, and beside it the image's config and its
layers, each as the registry sent it and named by its sha256. What is written is a .tar.zst in the order of
names. Whiteouts are those of the OCI image specification. Nothing is unpacked on the way: any user can
do it, and no link leads anywhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, cast

import zstandard

from rocbase.errors import FetchError
from rocbase.files.bounds import LAYERS
from rocbase.files.unpacking import BROKEN, Meter, Tar, Unpacked, open_tar
from rocwright.model.step_environment import EPOCH

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
# Folders of the root whose content is the kernel's, or the sandbox's.
KERNELS = ("dev", "proc", "sys")

COMPRESSION = 3
_LINKS = 40
_XATTR = "SCHILY.xattr."
_BROKEN: tuple[type[Exception], ...] = (
    *(*BROKEN, ValueError, LookupError, TypeError, AttributeError),
    *(RecursionError, FileNotFoundError),
)
_MOST_JSON = 4 * 1024**2
_DIGEST = re.compile("sha256:([0-9a-f]{64})")
_MOST_PATH, _MOST_DEPTH = 4096, 128


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageConfig:
    """What an image says of itself: its architecture by the OCI specification's name, and its environment."""

    architecture: str
    env: Mapping[str, str]


@dataclass(eq=False, slots=True)
class _Node:
    """A name in the tree: what its header says, in few bytes, for an image may have half a million of them.

    `layer` is the one whose archive holds the content of a file, at `offset`; a folder has `children`.
    """

    type: bytes = tarfile.DIRTYPE
    mode: int = 0o755
    uid: int = 0
    gid: int = 0
    mtime: int = EPOCH
    size: int = 0
    link: str = ""
    xattrs: dict[str, str] | None = None
    layer: int = 0
    offset: int = 0
    children: dict[str, _Node] | None = None

    @property
    def is_folder(self) -> bool:
        return self.type == tarfile.DIRTYPE

    @property
    def is_link(self) -> bool:
        return self.type == tarfile.SYMTYPE

    def below(self) -> dict[str, _Node]:
        """Return what a folder has."""
        if self.children is None:
            self.children = {}
        return self.children


def pack_layers(image: Path, target: Path, scratch: Path, name: str) -> ImageConfig:
    """Pack the root file system of the image in the folder `image` as `target`.

    Owners, modes, times and extended attributes are kept; devices, and what lies in /dev, /proc and /sys, are
    left out. Raises FetchError for an image that is not whole, or whose layers are not those that the image
    says it is made of.
    """
    try:
        with ExitStack() as stack:
            manifest = _json(image / "manifest.json")
            config = _json(_blob(image, manifest["config"]))
            blobs = [_blob(image, layer) for layer in manifest["layers"]]
            meter = Meter(LAYERS, sum(blob.stat().st_size for blob in set(blobs)))
            layers = [
                _layer(blob, digest, stack.enter_context(TemporaryFile(dir=scratch)), name, meter)
                for blob, digest in zip(blobs, config["rootfs"]["diff_ids"], strict=True)
            ]
            root = _Node()
            for number, layer in enumerate(layers):
                _lay_over(root, layer, number, name)
            _write(root, layers, target)
            return ImageConfig(
                architecture=str(config.get("architecture", "")),
                env=dict(
                    variable.split("=", 1) for variable in (config.get("config") or {}).get("Env") or ()
                ),
            )
    except _BROKEN as error:
        raise FetchError(
            f"the image {name} is not a complete image",
            cause=f"{type(error).__name__}: {error}"[:500],
            next_step="pull it again; if that does not help, the image is broken where it was published",
            subject=name,
        ) from error


def _json(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        described: dict[str, Any] = json.loads(file.read(_MOST_JSON))
    return described


def _blob(image: Path, described: dict[str, Any]) -> Path:
    digest = _DIGEST.fullmatch(str(described["digest"]))
    if digest is None:
        raise ValueError("a blob has no sha256")
    return image / digest[1]


def _layer(blob: Path, digest: str, file: IO[bytes], name: str, meter: Meter) -> Tar:
    """Unpack a layer into `file`, to be read at any place in it; it is seen to be what the image says."""
    checksum = hashlib.sha256()
    with blob.open("rb") as packed:
        for piece in Unpacked(packed, meter).pieces():
            checksum.update(piece)
            file.write(piece)
    if digest != f"sha256:{checksum.hexdigest()}":
        raise FetchError(
            f"a layer of {name} does not match the image's manifest",
            cause=f"it is sha256:{checksum.hexdigest()[:12]}, the manifest says {digest[:19]}",
            next_step="pull it again; if that does not help, do not trust that registry",
            subject=name,
        )
    file.seek(0)
    return open_tar(file, meter, "r:")


# laying layers over each other


def _node(member: tarfile.TarInfo, layer: Tar, number: int) -> _Node:
    if member.issparse() or len(member.linkname) > _MOST_PATH:
        raise ValueError(f"{member.name[:200]} is a sparse file, or a link to too long a path")
    xattrs = {name: text for name, text in member.pax_headers.items() if name.startswith(_XATTR)}
    layer.meter.spend(sum(map(len, xattrs.values())), "bytes of headers")
    regular = member.type in (tarfile.AREGTYPE, tarfile.CONTTYPE)
    return _Node(
        type=tarfile.REGTYPE if regular else member.type,
        mode=member.mode,
        uid=member.uid,
        gid=member.gid,
        mtime=int(member.mtime),
        size=member.size,
        link=member.linkname,
        xattrs=xattrs or None,
        layer=number,
        offset=member.offset_data,
    )


def _lay_over(root: _Node, layer: Tar, number: int, name: str) -> None:
    # what a layer removes is of the layers below it, wherever it says so
    added: list[tuple[str, _Node]] = []
    for member in layer.entries():
        *parents, last = _parts(member.name, name) or [""]
        if last.startswith(WHITEOUT):
            folder = _find(root, [*parents, "."])
            if folder is not None and last == OPAQUE:
                folder.children = None
            elif folder is not None:
                folder.below().pop(last.removeprefix(WHITEOUT), None)
        else:
            added.append((member.name, _node(member, layer, number)))
    added.reverse()
    while added:
        path, node = added.pop()
        _add(root, _parts(path, name), node, layer, name)


def _parts(path: str, name: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or len(parts) > _MOST_DEPTH or len(path) > _MOST_PATH:
        raise FetchError(
            f"the image {name} is refused: its member {path[:200]!r} is not safe to unpack",
            cause=f"its name points outside the folder, or is longer than {_MOST_DEPTH} folders",
            next_step="do not use this image; find out where it came from",
            subject=name,
        )
    return parts


def _add(root: _Node, parts: list[str], node: _Node, layer: Tar, name: str) -> None:
    if not parts:
        _replace(root, node)
        return
    siblings = _parent(root, parts[:-1], layer).below()
    present = siblings.get(parts[-1])
    if node.type == tarfile.LNKTYPE:
        linked = _find(root, _parts(node.link, name))
        if linked is None or linked.is_folder:
            raise KeyError(f"{node.link}, the target of the link {'/'.join(parts)}, is missing")
        siblings[parts[-1]] = linked
    elif node.is_folder and present is not None and present.is_folder:
        _replace(present, node)
    elif node.type not in (tarfile.CHRTYPE, tarfile.BLKTYPE):
        siblings[parts[-1]] = node
    else:
        siblings.pop(parts[-1], None)


def _replace(folder: _Node, header: _Node) -> None:
    """Give a folder what another header says of it."""
    folder.mode, folder.uid, folder.gid, folder.mtime = header.mode, header.uid, header.gid, header.mtime
    folder.xattrs = header.xattrs


def _parent(root: _Node, parts: list[str], layer: Tar) -> _Node:
    """The folder of that name, made where it is not there; links to folders are followed within the root."""
    folder = root
    for index, part in enumerate(parts):
        child = folder.below().get(part)
        if child is not None and child.is_link:
            child = _find(root, [*parts[: index + 1], "."])
        if child is None or not child.is_folder:
            layer.meter.spend(1, "files", "/".join(parts))
            child = folder.below()[part] = _Node()
        folder = child
    return folder


def _find(root: _Node, parts: list[str]) -> _Node | None:
    """What is at a path. Links on the way are followed within the root; one at its end only before a "."."""
    remaining, trail = list(parts), [root]
    for _ in range(_LINKS * max(1, len(parts))):
        if not remaining:
            return trail[-1]
        part = remaining.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            trail = trail[:-1] or [root]
            continue
        child = (trail[-1].children or {}).get(part)
        if child is None:
            return None
        if child.is_link and remaining:
            aim = child.link
            trail = [root] if aim.startswith("/") else trail
            remaining = aim.split("/") + remaining
        else:
            trail = [*trail, child]
    return None


# writing


def _write(root: _Node, layers: list[Tar], target: Path) -> None:
    compressor = zstandard.ZstdCompressor(level=COMPRESSION, threads=os.cpu_count() or 1)
    first: dict[_Node, str] = {}
    with (
        target.open("wb") as file,
        compressor.stream_writer(file, closefd=False) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path, node in _walk(root, ""):
            info = _header(node, path)
            body = None
            if node in first:
                info.type, info.linkname, info.size = tarfile.LNKTYPE, first[node], 0
            elif not node.is_folder:
                first[node] = path
            if info.isreg():
                body = layers[node.layer].fileobj
                assert body is not None
                body.seek(node.offset)
            tar.addfile(info, cast("IO[bytes] | None", body))


def _walk(node: _Node, path: str) -> Iterator[tuple[str, _Node]]:
    children = node.children or {}
    for name in sorted(children, key=os.fsencode):
        child, place = children[name], f"{path}/{name}" if path else name
        yield place, child
        if child.is_folder and place not in KERNELS:
            yield from _walk(child, place)


def _header(node: _Node, path: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.type, info.mode, info.uid, info.gid = node.type, node.mode, node.uid, node.gid
    info.mtime, info.size, info.linkname = node.mtime, node.size, node.link
    info.pax_headers = node.xattrs or {}
    return info
