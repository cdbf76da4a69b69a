"""The newest version of each package that the lists of a distribution's archive have.

Read as the archives publish them: `Packages` of Debian's kind (deb), `repomd.xml` and the list that it calls
primary (rpm), a database of pacman (alpm). Versions are written as locks write them.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from typing import IO, cast

import zstandard

from rocwheel.errors import FetchError, NetworkError
from rocwright.catalog.base import ListForm
from rocwright.model.versions import is_older
from rocwright.sources import web

MOST = 1024**3
"""Bytes of a list, unpacked; the largest known ones have some 250 MiB."""

_DAMAGED = (tarfile.TarError, lzma.LZMAError, zstandard.ZstdError, zlib.error, EOFError)

Reader = Callable[[str, str, float], Iterator[tuple[str, str]]]


def newest(form: ListForm, addresses: Sequence[str], architecture: str, seconds: float) -> dict[str, str]:
    """Package -> newest version in these lists, for an architecture by the archive's name for it.

    Each address may take `seconds`. Raises FetchError, NetworkError.
    """
    found: dict[str, str] = {}
    for address in addresses:
        try:
            for name, version in _READERS[form](address, architecture, seconds):
                if name not in found or is_older(found[name], version):
                    found[name] = version
        except (*_DAMAGED, OSError, ValueError, KeyError) as error:
            raise NetworkError(
                f"{address} is not a valid package list",
                cause=f"{type(error).__name__}: {error}"[:300],
                next_step="open that address and check what it serves",
            ) from error
    return found


def _deb(address: str, architecture: str, seconds: float) -> Iterator[tuple[str, str]]:
    # a list is for one architecture, whose name is part of its address
    data = b""
    for packed in (".xz", ".gz", ""):
        try:
            data = web.read_bytes(address + packed, seconds)
            break
        except FetchError:
            if not packed:
                raise
    name = ""
    for line in _opened(data):
        if line.startswith(b"Package: "):
            name = line[9:].strip().decode()
        elif line.startswith(b"Version: "):
            yield name, line[9:].strip().decode()


def _rpm(address: str, architecture: str, seconds: float) -> Iterator[tuple[str, str]]:
    primary = _PRIMARY.search(web.read_bytes(address, seconds))
    if primary is None:
        raise ValueError("it does not name a primary list")
    base = re.sub(r"repodata/[^/]*$", "", address)
    packages = _opened(web.read_bytes(base + primary[1].decode(), seconds)).read()
    for name, its, version in (match.groups() for match in _PACKAGE.finditer(packages)):
        if its.decode() in (architecture, "noarch"):
            told = {key.decode(): unescape(value.decode()) for key, value in _ATTRIBUTE.findall(version)}
            epoch = told.get("epoch", "0")
            yield name.decode(), ("" if epoch == "0" else f"{epoch}:") + f"{told['ver']}-{told['rel']}"


_PRIMARY = re.compile(rb"""<data\s+type=["']primary["'].*?<location\s+href=["']([^"']+)["']""", re.DOTALL)
_PACKAGE = re.compile(
    rb"""<package\s+type=["']rpm["']>\s*<name>([^<]+)</name>\s*<arch>([^<]+)</arch>\s*<version\s([^>]*)>"""
)
_ATTRIBUTE = re.compile(rb"""([a-z]+)=["']([^"']*)["']""")


def _alpm(address: str, architecture: str, seconds: float) -> Iterator[tuple[str, str]]:
    with tarfile.open(fileobj=_opened(web.read_bytes(address, seconds))) as tar:
        for one in tar:
            if one.isdir():
                # a folder for each package: its name, its version and its build
                name, version, build = one.name.rstrip("/").rsplit("-", 2)
                yield name, f"{version}-{build}"


_READERS: dict[ListForm, Reader] = {"deb": _deb, "rpm": _rpm, "alpm": _alpm}


def _opened(data: bytes) -> IO[bytes]:
    """A list, unpacked whole. Raises NetworkError where it has no end."""
    packed = io.BytesIO(data)
    opens = next((opens for magic, opens in _PACKED if data.startswith(magic)), None)
    unpacked = cast("IO[bytes]", opens(packed)) if opens else packed
    whole = io.BytesIO()
    while piece := unpacked.read(1024 * 1024):
        whole.write(piece)
        if whole.tell() > MOST:
            raise NetworkError(
                "a package list is too large",
                cause=f"it unpacks to more than {MOST // 1024**2} MiB",
                next_step="check the address of the archive in the base's file in the catalog",
            )
    whole.seek(0)
    return whole


_PACKED: tuple[tuple[bytes, Callable[..., object]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"\xfd7zXZ\x00", lzma.open),
    (b"BZh", bz2.open),
    (b"\x28\xb5\x2f\xfd", zstandard.open),
)
