"""The first lock with a network fills in what the catalog does not know of files at an address."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256, sha512
from pathlib import Path

import pytest
from tests.sources.conftest import Index, index
from tests.sources.test_index_resolve import wheel
from tests.sources.test_sdist import files, sdist

from rocbase.errors import ConflictError, FetchError
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.model import Component
from rocwright.catalog.provider import Provider, Shelf
from rocwright.home import Home
from rocwright.model.steps import ArchiveOrigin, FilePin
from rocwright.plan.resolve.model import Lock, Request
from rocwright.plan.resolve.network import NetworkUpstream
from rocwright.store.local import LocalStore

__all__ = ["index"]

DATA = b"an archive" * 1000
HOST = "https://files.example/"


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that stands in for every host of these tests."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    address = builtin_catalog().provider("therock-tarball").shelf_of("7.14.0").archive.rpartition("/")[0]
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", f"{HOST}={folder}/ {address}/={folder}/")
    return folder


def online(store: LocalStore, home: Home, before: Lock | None = None) -> NetworkUpstream:
    catalog = builtin_catalog()
    base, release = catalog.base("debian:sid")
    return NetworkUpstream(base, release, catalog, store, home, lambda _: None, before)


@pytest.fixture
def outside(store: LocalStore, home: Home) -> Iterator[NetworkUpstream]:
    with online(store, home) as asked:
        yield asked


def component(**download: str) -> Component:
    return Component.model_validate(
        {
            "name": "hello",
            "summary": "x",
            "license": "MIT",
            "kind": "archive",
            "release": [{"version": "1.0", "places": [{"url": f"{HOST}hello-1.0.tar.gz"}], "source": "x"}],
            "download": [{"url": f"{HOST}beside.tar.gz", "source": "x"} | download] if download else [],
        }
    )


def test_a_tarball_of_rocm_is_locked_by_its_hash(
    mirror: Path, outside: NetworkUpstream, store: LocalStore
) -> None:
    (mirror / "therock-dist-linux-gfx1151-7.14.0.tar.gz").write_bytes(DATA)
    provider = builtin_catalog().provider("therock-tarball")
    locked = outside.rocm(provider, "7.14.0", ("gfx1151",))
    (pin,) = locked.files
    assert pin.sha256 == sha256(DATA).hexdigest()
    assert pin.origin == ArchiveOrigin(url=locked.wanted[0])
    assert locked.pending == ""
    assert store.has(pin.sha256, pin.size)


def test_an_archive_and_what_its_build_downloads_are_locked_by_hash(
    mirror: Path, outside: NetworkUpstream
) -> None:
    (mirror / "hello-1.0.tar.gz").write_bytes(DATA)
    (mirror / "beside.tar.gz").write_bytes(b"beside")
    recipe = component(sha512=sha512(b"beside").hexdigest())
    locked = outside.component(recipe, "1.0", recipe.release[0].places)
    assert (locked.kind, locked.place) == ("archive", f"archive {HOST}hello-1.0.tar.gz")
    assert [pin.sha256 for pin in (*locked.files, *locked.downloads)] == [
        sha256(DATA).hexdigest(),
        sha256(b"beside").hexdigest(),
    ]
    assert locked.pending == ""


def test_a_download_that_is_not_what_the_catalog_says_ends_the_lock(
    mirror: Path, outside: NetworkUpstream
) -> None:
    (mirror / "hello-1.0.tar.gz").write_bytes(DATA)
    (mirror / "beside.tar.gz").write_bytes(b"other")
    recipe = component(sha256=sha256(b"beside").hexdigest())
    with pytest.raises(FetchError, match="does not match the catalog"):
        outside.component(recipe, "1.0", recipe.release[0].places)


def test_a_providers_source_distribution_is_locked_with_what_builds_it(
    index: Index, outside: NetworkUpstream, store: LocalStore
) -> None:
    info = "Metadata-Version: 2.1\nName: rocm\nVersion: 7.14.0\nProvides-Extra: devel\n"
    index.files["rocm"] = {
        "rocm-7.14.0.tar.gz": sdist(**files(f"{info}Requires-Dist: sdk; extra == 'devel'\n"))
    }
    for name in ("sdk", "setuptools", "wheel", "pip"):
        index.files[name] = {f"{name}-1.0-py3-none-any.whl": wheel(name, "1.0")}
    provider = Provider(
        name="wheels",
        summary="x",
        kind="wheels",
        wanted=("rocm[devel]=={version}",),
        shelf=(Shelf(index=f"{index.url}/simple", source="x"),),
        source="x",
    )
    locked = outside.rocm(provider, "7.14.0", ("gfx1151",))
    (one,) = locked.sdists
    assert [pin.filename for pin in locked.files] == ["sdk-1.0-py3-none-any.whl"]
    assert one.files[0].filename == "rocm-7.14.0.tar.gz"
    assert one.wanted == ("pip", "setuptools", "wheel")
    assert [pin.filename.partition("-")[0] for pin in one.requires] == ["pip", "setuptools", "wheel"]
    # what builds it comes from the index that pip is set up for
    assert {pin.origin.model_dump()["index"] for pin in one.requires} == {""}


def test_a_source_distribution_that_only_another_builds_is_a_conflict(
    index: Index, outside: NetworkUpstream, store: LocalStore
) -> None:
    for name in ("one", "setuptools"):
        info = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        index.files[name] = {f"{name}-1.0.tar.gz": sdist(**files(info))}
    for name in ("wheel", "pip"):
        index.files[name] = {f"{name}-1.0-py3-none-any.whl": wheel(name, "1.0")}
    with pytest.raises(ConflictError, match=r"building one-1\.0\.tar\.gz needs setuptools-1\.0\.tar\.gz"):
        outside.python("3.13", ("one",))


def test_what_an_earlier_lock_knows_and_the_store_has_is_not_fetched_again(
    mirror: Path, outside: NetworkUpstream, store: LocalStore, home: Home
) -> None:
    (mirror / "hello-1.0.tar.gz").write_bytes(DATA)
    recipe = component()
    first = outside.component(recipe, "1.0", recipe.release[0].places)
    (mirror / "hello-1.0.tar.gz").unlink()
    before = Lock(
        rocwright="0.1.0",
        created="2025-01-01T00:00:00Z",
        request=Request(stack="hello", gpu=("gfx1151",), base="debian:sid"),
        components=(first,),
        roots=(),
    )
    with online(store, home, before) as later:
        again = later.component(recipe, "1.0", recipe.release[0].places)
    (pin,) = again.files
    assert pin == FilePin.model_validate(first.files[0].model_dump())
