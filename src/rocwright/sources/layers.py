"""The layers of an image, laid over each other and packed as one root file system, the same way everywhere.

What is read is the archive that every engine writes (`docker save`): manifest.json, the image's config and
its layers. What is written is a .tar.zst in the order of names. Whiteouts are those of the OCI image
specification. Nothing is unpacked on the way, so that any user can do it, and no link leads anywhere.
"""

from __future__ import annotations

import copy
import gzip
import hashlib
import json
import os
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import zstandard

from rocwheel.errors import FetchError
from rocwheel.files.atomic import CHUNK
from rocwright.model.step_environment import EPOCH

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
KERNELS = ("dev", "proc", "sys")
"""Folders of the root whose content is the kernel's, or the sandbox's."""

COMPRESSION = 3
_LINKS = 40
_XATTR = "SCHILY.xattr."
_BROKEN = (
    *(tarfile.TarError, zstandard.ZstdError, gzip.BadGzipFile, zlib.error, EOFError),
    *(ValueError, LookupError, TypeError),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageConfig:
    """What an image says of itself: its architecture by the OCI specification's name, and its environment."""

    architecture: str
    env: Mapping[str, str]


@dataclass(eq=False, slots=True)
class _Node:
    """A name in the tree. `body` is the layer whose archive holds the file that `member` describes."""

    member: tarfile.TarInfo
    layer: int = 0
    children: dict[str, _Node] = field(default_factory=dict)


def pack_layers(archive: Path, target: Path, scratch: Path, name: str) -> ImageConfig:
    """Pack the root file system of the one image in `archive` as `target`.

    Owners, modes, times and extended attributes are kept; devices, and what lies in /dev, /proc and /sys, are
    left out. Raises FetchError for an archive that is not whole, or whose layers are not those that the image
    says it is made of.
    """
    try:
        with ExitStack() as stack:
            saved = stack.enter_context(tarfile.open(archive, "r:"))
            manifest, config = _described(saved)
            layers = [
                stack.enter_context(_layer(saved, told, digest, scratch, name))
                for told, digest in zip(manifest["Layers"], config["rootfs"]["diff_ids"], strict=True)
            ]
            root = _Node(_folder())
            for number, layer in enumerate(layers):
                _lay_over(root, layer, number, name)
            _write(root, layers, target)
            return ImageConfig(
                architecture=str(config.get("architecture", "")),
                env=dict(one.split("=", 1) for one in (config.get("config") or {}).get("Env") or ()),
            )
    except _BROKEN as error:
        raise FetchError(
            f"the image {name} is not a complete image",
            cause=f"{type(error).__name__}: {error}"[:500],
            next_step="pull it again; if that does not help, the image is broken where it was published",
            subject=name,
        ) from error


def _described(saved: tarfile.TarFile) -> tuple[dict[str, Any], dict[str, Any]]:
    [manifest] = json.load(_opened(saved, "manifest.json"))
    return manifest, json.load(_opened(saved, manifest["Config"]))


def _opened(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    found = tar.extractfile(name)
    if found is None:
        raise ValueError(f"{name} is not a file")
    return found


def _layer(saved: tarfile.TarFile, told: str, digest: str, scratch: Path, name: str) -> tarfile.TarFile:
    """A layer to be read at any place in it, after it was seen to be what the image says."""
    file = _opened(saved, told)
    magic = file.read(4)
    file.seek(0)
    if magic[:2] == b"\x1f\x8b" or magic == b"\x28\xb5\x2f\xfd":
        file = _plain(file, magic, scratch / f"{digest[7:]}.tar")
    found = hashlib.sha256()
    while chunk := file.read(CHUNK):
        found.update(chunk)
    if digest != f"sha256:{found.hexdigest()}":
        raise FetchError(
            f"a layer of {name} does not match the image's manifest",
            cause=f"it is sha256:{found.hexdigest()[:12]}, the manifest says {digest[:19]}",
            next_step="pull it again; if that does not help, do not trust that registry",
            subject=name,
        )
    file.seek(0)
    return tarfile.open(fileobj=file, mode="r:")


def _plain(file: IO[bytes], magic: bytes, target: Path) -> IO[bytes]:
    with target.open("wb") as out:
        reader: Any = (
            gzip.GzipFile(fileobj=file)
            if magic[:2] == b"\x1f\x8b"
            else zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        )
        while chunk := reader.read(CHUNK):
            out.write(chunk)
    return target.open("rb")


# laying layers over each other


def _folder() -> tarfile.TarInfo:
    info = tarfile.TarInfo("")
    info.type, info.mode, info.mtime = tarfile.DIRTYPE, 0o755, EPOCH
    return info


def _lay_over(root: _Node, layer: tarfile.TarFile, number: int, name: str) -> None:
    # what a layer removes is of the layers below it, wherever it says so
    added: list[tuple[list[str], tarfile.TarInfo]] = []
    for member in layer:
        *parents, last = _parts(member.name, name) or [""]
        if last == OPAQUE:
            found = _find(root, [*parents, "."])
            if found is not None:
                found.children.clear()
        elif last.startswith(WHITEOUT):
            found = _find(root, [*parents, "."])
            if found is not None:
                found.children.pop(last.removeprefix(WHITEOUT), None)
        else:
            added.append(([*parents, last] if last else [], member))
    for parts, member in added:
        _add(root, parts, member, number, name)


def _parts(path: str, name: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise FetchError(
            f"the image {name} is refused: its member {path!r} is not safe to unpack",
            cause="its name points outside the folder",
            next_step="do not use this image; find out where it came from",
            subject=name,
        )
    return parts


def _add(root: _Node, parts: list[str], member: tarfile.TarInfo, number: int, name: str) -> None:
    if not parts:
        root.member = member
        return
    parent = _parent(root, parts[:-1])
    if member.islnk():
        linked = _find(root, _parts(member.linkname, name))
        if linked is None or linked.member.isdir():
            raise KeyError(f"{member.linkname}, the target of the link {member.name}, is missing")
        parent.children[parts[-1]] = linked
    elif member.isdir() and parts[-1] in parent.children and parent.children[parts[-1]].member.isdir():
        parent.children[parts[-1]].member = member
    elif not member.isdev() or member.isfifo():
        parent.children[parts[-1]] = _Node(member, number)
    else:
        parent.children.pop(parts[-1], None)


def _parent(root: _Node, parts: list[str]) -> _Node:
    """The folder of that name, made where it is not there; links to folders are followed within the root."""
    at = root
    for index, part in enumerate(parts):
        found = at.children.get(part)
        if found is not None and found.member.issym():
            found = _find(root, [*parts[: index + 1], "."])
        if found is None or not found.member.isdir():
            found = at.children[part] = _Node(_folder())
        at = found
    return at


def _find(root: _Node, parts: list[str]) -> _Node | None:
    """What is at a path. Links on the way are followed within the root; one at its end only before a "."."""
    left, way = list(parts), [root]
    for _ in range(_LINKS * max(1, len(parts))):
        if not left:
            return way[-1]
        part = left.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            way = way[:-1] or [root]
            continue
        found = way[-1].children.get(part)
        if found is None:
            return None
        if found.member.issym() and left:
            aim = found.member.linkname
            way = [root] if aim.startswith("/") else way
            left = aim.split("/") + left
        else:
            way = [*way, found]
    return None


# writing


def _write(root: _Node, layers: list[tarfile.TarFile], target: Path) -> None:
    compressor = zstandard.ZstdCompressor(level=COMPRESSION, threads=os.cpu_count() or 1)
    first: dict[_Node, str] = {}
    with (
        target.open("wb") as file,
        compressor.stream_writer(file, closefd=False) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path, node in _walk(root, ""):
            info = _header(node.member, path)
            if node in first:
                info.type, info.linkname, info.size = tarfile.LNKTYPE, first[node], 0
            elif not info.isdir():
                first[node] = path
            tar.addfile(info, layers[node.layer].extractfile(node.member) if info.isreg() else None)


def _walk(node: _Node, path: str) -> Iterator[tuple[str, _Node]]:
    for name in sorted(node.children, key=os.fsencode):
        child, place = node.children[name], f"{path}/{name}" if path else name
        yield place, child
        if child.member.isdir() and place not in KERNELS:
            yield from _walk(child, place)


def _header(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo:
    info = copy.copy(member)
    info.name, info.uname, info.gname, info.mtime = path, "", "", int(member.mtime)
    info.pax_headers = {name: text for name, text in member.pax_headers.items() if name.startswith(_XATTR)}
    if info.type in (tarfile.AREGTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE):
        info.type = tarfile.REGTYPE
    return info
