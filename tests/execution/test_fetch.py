"""Fetch once, verify, keep."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from tests.making import builtin
from tests.sources.conftest import Index, Repository
from tests.sources.conftest import index as index
from tests.sources.conftest import repository as repository

from rocbase.errors import FetchError
from rocwright.catalog.folders import DATA
from rocwright.execution.fetch import fetch
from rocwright.home import Home
from rocwright.model.steps import FilePin, GitOrigin, IndexOrigin
from rocwright.sources.git import pack_commit
from rocwright.sources.places import pack_builtin
from rocwright.store.local import LocalStore
from rocwright.store.model import verified


def pin_of(name: str, data: bytes) -> FilePin:
    return FilePin(
        filename=name,
        sha256=sha256(data).hexdigest(),
        size=len(data),
        origin=IndexOrigin(project="hello", version="1.0"),
    )


def fetched(store: LocalStore, tmp_path: Path, *pins: FilePin) -> list[str]:
    lines: list[str] = []
    fetch(pins, store, Home(tmp_path), tmp_path / "scratch", lines.append)
    return lines


def test_a_file_of_the_index_comes_into_the_store(index: Index, store: LocalStore, tmp_path: Path) -> None:
    index.files["hello"] = {"hello-1.0.tar.gz": b"data"}
    pin = pin_of("hello-1.0.tar.gz", b"data")
    assert fetched(store, tmp_path, pin)
    assert verified(store, pin.sha256).read_bytes() == b"data"
    assert not (tmp_path / "scratch").exists()


def test_what_the_store_has_is_not_fetched_again(index: Index, store: LocalStore, tmp_path: Path) -> None:
    index.files["hello"] = {"hello-1.0.tar.gz": b"data"}
    pin = pin_of("hello-1.0.tar.gz", b"data")
    fetched(store, tmp_path, pin)
    index.files.clear()
    assert fetched(store, tmp_path, pin) == []


def test_a_file_that_is_named_twice_is_fetched_once(index: Index, store: LocalStore, tmp_path: Path) -> None:
    """The second found it gone: the first had moved it into the store."""
    index.files["hello"] = {"hello-1.0.tar.gz": b"data"}
    pin = pin_of("hello-1.0.tar.gz", b"data")
    told = fetched(store, tmp_path, pin, pin.model_copy())
    assert told[0].startswith("fetch: 1 file")
    assert verified(store, pin.sha256).read_bytes() == b"data"


def test_a_file_that_did_not_arrive_is_not_told_as_changed(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwright.sources.index.download", lambda pin, folder: None)
    with pytest.raises(FetchError, match="did not arrive"):
        fetched(store, tmp_path, pin_of("hello-1.0.tar.gz", b"data"))


@pytest.mark.parametrize(
    ("served", "said"),
    [
        (b"dat4", "does not match the lock"),
        (b"dat", "does not match the lock"),
        (b"data and more", "is larger than expected"),
        (b"", "does not match the lock"),
    ],
)
def test_a_file_that_is_not_the_one_of_the_lock_never_comes_into_the_store(
    index: Index, store: LocalStore, tmp_path: Path, served: bytes, said: str
) -> None:
    index.files["hello"] = {"hello-1.0.tar.gz": served}
    pin = pin_of("hello-1.0.tar.gz", b"data")
    with pytest.raises(FetchError, match=said):
        fetched(store, tmp_path, pin)
    assert list(store.local.files()) == []


def test_a_commit_comes_into_the_store(repository: Repository, store: LocalStore, tmp_path: Path) -> None:
    pin = pack_commit(GitOrigin(url=repository.url, commit=repository.git("rev-parse", "HEAD")), tmp_path)
    fetched(store, tmp_path, pin)
    assert verified(store, pin.sha256)


def test_a_commit_that_gives_other_bytes_than_locked_is_refused(
    repository: Repository, store: LocalStore, tmp_path: Path
) -> None:
    pin = pack_commit(GitOrigin(url=repository.url, commit=repository.git("rev-parse", "HEAD")), tmp_path)
    other = pin.model_copy(update={"sha256": "0" * 64})
    with pytest.raises(FetchError, match="does not match the lock"):
        fetched(store, tmp_path, other)


def test_what_rocwright_carries_is_fetched_from_itself(store: LocalStore, tmp_path: Path) -> None:
    pin = pack_builtin("gfx-smoke", DATA / "sources" / "gfx-smoke", LocalStore(tmp_path / "other"))
    fetched(store, tmp_path, pin)
    assert verified(store, pin.sha256)


def test_a_lock_made_by_a_rocwright_that_carried_something_else_is_refused(
    store: LocalStore, tmp_path: Path
) -> None:
    with pytest.raises(FetchError, match="the source of gfx-smoke does not match the lock") as caught:
        fetched(store, tmp_path, builtin("gfx-smoke"))
    assert caught.value.next_step == "rocwright lock"
    assert list(store.local.files()) == []
