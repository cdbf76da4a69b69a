"""Package lists of three kinds of archive, served here as they are published."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import zstandard

from rocbase.errors import FetchError, NetworkError
from rocwright.catalog.base import ListForm
from rocwright.sources.package_lists import newest

DEB = b"""Package: gcc
Architecture: amd64
Version: 4:14.2.0-1
Description: Version: 9 of something
 Package: nothing

Package: tool
Version: 1.0~rc1-1

Package: tool
Version: 1.0-1
"""
PRIMARY = b"""<?xml version="1.0" encoding="UTF-8"?>
<metadata xmlns="http://linux.duke.edu/metadata/common" packages="4">
<package type="rpm">
  <name>gcc</name>
  <arch>x86_64</arch>
  <version epoch="0" ver="15.2.1" rel="2.fc43"/>
  <summary>a &lt;name&gt;fake&lt;/name&gt;</summary>
</package>
<package type="rpm"><name>gcc</name><arch>x86_64</arch>
  <version epoch="0" ver="15.2.1" rel="10.fc43"/></package>
<package type="rpm"><name>gcc</name><arch>i686</arch><version epoch="0" ver="99" rel="1"/></package>
<package type="rpm"><name>words</name><arch>noarch</arch><version epoch="2" ver="1.0" rel="1.fc43"/></package>
</metadata>"""
REPOMD = b"""<repomd xmlns="http://linux.duke.edu/metadata/repo"><revision>1</revision>
<data type="filelists"><location href="repodata/abc-filelists.xml.zst"/></data>
<data type="primary"><checksum type="sha256">x</checksum>
  <location href="repodata/abc-primary.xml.zst"/></data></repomd>"""


def alpm() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name in ("gcc-15.2.1+r301-1", "lib32-gcc-libs-1:2-3"):
            folder = tarfile.TarInfo(name)
            folder.type = tarfile.DIRTYPE
            tar.addfile(folder)
            tar.addfile(tarfile.TarInfo(f"{name}/desc"))
    return data.getvalue()


FILES = {
    "deb/Packages.xz": lzma.compress(DEB),
    "old/Packages.gz": gzip.compress(DEB.replace(b"14.2", b"13.1") + b"\nPackage: other\nVersion: 2\n"),
    "rpm/repodata/repomd.xml": REPOMD,
    "rpm/repodata/abc-primary.xml.zst": zstandard.compress(PRIMARY),
    "core.db": alpm(),
    "cut/Packages.xz": lzma.compress(DEB)[:-20],
    "odd.xml": b"<html>it works</html>",
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("archive")
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.mark.parametrize(
    ("form", "names", "expected"),
    [
        ("deb", ["old/Packages", "deb/Packages"], {"gcc": "4:14.2.0-1", "tool": "1.0-1", "other": "2"}),
        ("rpm", ["rpm/repodata/repomd.xml"], {"gcc": "15.2.1-10.fc43", "words": "2:1.0-1.fc43"}),
        ("alpm", ["core.db"], {"gcc": "15.2.1+r301-1", "lib32-gcc-libs": "1:2-3"}),
    ],
    ids=["deb", "rpm", "alpm"],
)
def test_the_newest_of_each_package_is_found(
    url: str, form: ListForm, names: list[str], expected: dict[str, str]
) -> None:
    assert newest(form, [f"{url}/{name}" for name in names], "x86_64", 10) == expected


@pytest.mark.parametrize(
    ("form", "name"),
    [("deb", "cut/Packages"), ("rpm", "odd.xml"), ("alpm", "odd.xml"), ("alpm", "deb/Packages.xz")],
    ids=["cut", "html", "no tar", "no tar either"],
)
def test_what_is_no_list_is_said_to_be_none(url: str, form: ListForm, name: str) -> None:
    with pytest.raises(NetworkError, match="is not a valid package list"):
        newest(form, [f"{url}/{name}"], "x86_64", 10)


def test_a_list_that_is_not_there_is_told_as_such(url: str) -> None:
    with pytest.raises(FetchError, match="there is no file at"):
        newest("deb", [f"{url}/gone/Packages"], "amd64", 10)
