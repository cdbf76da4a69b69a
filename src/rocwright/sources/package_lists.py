"""The newest version of each package that the lists of a distribution's archive have.

Read as the archives publish them: `Packages` of Debian's kind (deb), `repomd.xml` and the list that it calls
primary (rpm), a database of pacman (alpm). Versions are written as locks write them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from itertools import chain
from typing import IO, cast

from rocbase.errors import FetchError, NetworkError
from rocbase.files.bounds import PACKAGE_LISTS
from rocbase.files.unpacking import BROKEN, Meter, Unpacked, open_tar
from rocwright.catalog.base import ListForm
from rocwright.model.versions import is_older
from rocwright.sources import web

# Bytes of a list as it comes, and of an entry: the largest known lists have 20 MiB, their entries 64 KiB.
MOST_PACKED, MOST_ENTRY = 64 * 1024**2, 1024**2

_DAMAGED: tuple[type[Exception], ...] = (*BROKEN, OSError, ValueError, KeyError)

Reader = Callable[[str, str, float], Iterator[tuple[str, str]]]


def newest(form: ListForm, addresses: Sequence[str], architecture: str, seconds: float) -> dict[str, str]:
    """Package -> newest version in these lists, for an architecture by the archive's name for it.

    Each address may take `seconds`. Raises FetchError, NetworkError.
    """
    versions: dict[str, str] = {}
    for address in addresses:
        try:
            for name, version in _READERS[form](address, architecture, seconds):
                if name not in versions or is_older(versions[name], version):
                    versions[name] = version
        except _DAMAGED as error:
            raise NetworkError(
                f"{address} is not a valid package list",
                cause=f"{type(error).__name__}: {error}"[:300],
                next_step="open that address and check what it serves",
            ) from error
    return versions


def _deb(address: str, architecture: str, seconds: float) -> Iterator[tuple[str, str]]:
    # a list is for one architecture, whose name is part of its address
    data = b""
    for packed in (".xz", ".gz", ""):
        try:
            data = web.read_bytes(address + packed, seconds, MOST_PACKED)
            break
        except FetchError:
            if not packed:
                raise
    name = ""
    for field in _matches(data, _FIELD, b"\n"):
        if field[1] == b"Package":
            name = field[2].strip().decode()
        else:
            yield name, field[2].strip().decode()


_FIELD = re.compile(rb"^(Package|Version): (.*)$", re.MULTILINE)


def _rpm(address: str, architecture: str, seconds: float) -> Iterator[tuple[str, str]]:
    primary = _PRIMARY.search(web.read_bytes(address, seconds, MOST_PACKED))
    if primary is None:
        raise ValueError("it does not name a primary list")
    base = re.sub(r"repodata/[^/]*$", "", address)
    packed = web.read_bytes(base + primary[1].decode(), seconds, MOST_PACKED)
    for package in _matches(packed, _PACKAGE, b"</package>"):
        if package[2].decode() in (architecture, "noarch"):
            attributes = {
                key.decode(): unescape(value.decode()) for key, value in _ATTRIBUTE.findall(package[3])
            }
            epoch = attributes.get("epoch", "0")
            version = f"{attributes['ver']}-{attributes['rel']}"
            yield package[1].decode(), version if epoch == "0" else f"{epoch}:{version}"


_PRIMARY = re.compile(rb"""<data\s+type=["']primary["'].*?<location\s+href=["']([^"']+)["']""", re.DOTALL)
_PACKAGE = re.compile(
    rb"""<package\s+type=["']rpm["']>\s*<name>([^<]+)</name>\s*<arch>([^<]+)</arch>\s*<version\s([^>]*)>"""
)
_ATTRIBUTE = re.compile(rb"""([a-z]+)=["']([^"']*)["']""")


def _alpm(address: str, architecture: str, seconds: float) -> Iterator[tuple[str, str]]:
    data = web.read_bytes(address, seconds, MOST_PACKED)
    meter = Meter(PACKAGE_LISTS, len(data))
    with open_tar(cast("IO[bytes]", Unpacked(io.BytesIO(data), meter)), meter) as tar:
        for member in tar.entries():
            if member.isdir():
                # a folder for each package: its name, its version and its build
                name, version, build = member.name.rstrip("/").rsplit("-", 2)
                yield name, f"{version}-{build}"


_READERS: dict[ListForm, Reader] = {"deb": _deb, "rpm": _rpm, "alpm": _alpm}


def _matches(data: bytes, pattern: re.Pattern[bytes], end: bytes) -> Iterator[re.Match[bytes]]:
    """Yield what a list holds, unpacked a part at a time; `end` is what is behind each entry."""
    meter = Meter(PACKAGE_LISTS, len(data))
    remainder = b""
    for piece in chain(Unpacked(io.BytesIO(data), meter).pieces(), [end]):
        entries, cut, remainder = (remainder + piece).rpartition(end)
        if len(remainder) > MOST_ENTRY:
            raise ValueError("one of its entries has no end")
        for match in pattern.finditer(entries + cut):
            meter.spend(1, "files")
            yield match
