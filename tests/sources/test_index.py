"""The package index that pip is set up for, served here."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from tests.sources.conftest import Index

from rocbase.errors import FetchError, NetworkError
from rocwright.model.steps import IndexOrigin
from rocwright.sources.index import download, find_sdist
from rocwright.sources.pins import check_pin
from rocwright.store.local import LocalStore
from rocwright.store.model import verified

DATA = b"a source distribution" * 1000


@pytest.fixture
def published(index: Index) -> Index:
    """hello 1.0 as a source distribution and a wheel, and a later release."""
    index.files["hello"] = {
        "hello-0.9.tar.gz": b"older",
        "hello-1.0-py3-none-any.whl": b"wheel",
        "hello-1.0.tar.gz": DATA,
        "hello-1.1.tar.gz": b"newer",
    }
    return index


def test_a_release_is_found_with_its_hash_and_size(published: Index, store: LocalStore) -> None:
    pin = find_sdist("hello", "1.0", store)
    assert pin.filename == "hello-1.0.tar.gz"
    assert (pin.sha256, pin.size) == (sha256(DATA).hexdigest(), len(DATA))
    assert pin.origin == IndexOrigin(project="hello", version="1.0")


def test_what_was_found_is_downloaded_and_fits(published: Index, store: LocalStore, tmp_path: Path) -> None:
    pin = find_sdist("hello", "1.0", store)
    download(pin, tmp_path)
    check_pin(tmp_path / pin.filename, pin)
    assert (tmp_path / pin.filename).read_bytes() == DATA


def test_an_index_of_the_old_form_gives_the_same_answer(
    published: Index, store: LocalStore, tmp_path: Path
) -> None:
    told = find_sdist("hello", "1.0", store)
    published.form = "html"
    measured = find_sdist("hello", "1.0", store)
    assert measured == told
    assert verified(store, measured.sha256).read_bytes() == DATA
    download(measured, tmp_path)
    check_pin(tmp_path / measured.filename, measured)


def test_an_index_of_the_old_form_that_gives_a_wrong_file_is_refused(
    published: Index, store: LocalStore
) -> None:
    published.form, published.wrong = "html", b"something else"
    with pytest.raises(FetchError, match="does not match the lock"):
        find_sdist("hello", "1.0", store)
    assert list(store.local.files()) == []


def test_a_file_that_was_changed_on_the_index_is_refused(
    published: Index, store: LocalStore, tmp_path: Path
) -> None:
    pin = find_sdist("hello", "1.0", store)
    published.files["hello"]["hello-1.0.tar.gz"] = DATA.replace(b"a source", b"A source")
    download(pin, tmp_path)
    with pytest.raises(FetchError, match=r"hello-1\.0\.tar\.gz does not match the lock") as caught:
        check_pin(tmp_path / pin.filename, pin)
    assert pin.sha256[:12] in caught.value.cause


def test_a_download_that_ends_early_is_never_taken_for_the_file(
    published: Index, store: LocalStore, tmp_path: Path
) -> None:
    pin = find_sdist("hello", "1.0", store)
    published.truncate = True
    with pytest.raises((NetworkError, FetchError)):
        download(pin, tmp_path)
        check_pin(tmp_path / pin.filename, pin)


def test_a_project_that_is_not_there_is_told_by_name(published: Index, store: LocalStore) -> None:
    with pytest.raises(FetchError, match="no project absent"):
        find_sdist("absent", "1.0", store)


@pytest.mark.parametrize("version", ["2.0", "1", "1.0.post1"])
def test_a_release_that_is_not_there_is_told_with_its_version(
    published: Index, store: LocalStore, version: str
) -> None:
    with pytest.raises(FetchError, match=f"no source distribution of hello {version}"):
        find_sdist("hello", version, store)


def test_a_release_without_a_hash_is_not_taken(published: Index, store: LocalStore) -> None:
    published.hashes = False
    with pytest.raises(FetchError, match="with a sha256"):
        find_sdist("hello", "1.0", store)


def test_a_file_that_was_withdrawn_is_told_as_such(
    published: Index, store: LocalStore, tmp_path: Path
) -> None:
    pin = find_sdist("hello", "1.0", store)
    del published.files["hello"]["hello-1.0.tar.gz"]
    with pytest.raises(FetchError, match="no longer has"):
        download(pin, tmp_path)


def test_a_project_that_was_withdrawn_is_told_as_such(
    published: Index, store: LocalStore, tmp_path: Path
) -> None:
    pin = find_sdist("hello", "1.0", store)
    published.files.clear()
    with pytest.raises(FetchError):
        download(pin, tmp_path)


@pytest.mark.parametrize(
    ("form", "page"),
    [
        ("json", b""),
        ("json", b"[]"),
        ("json", b'{"files": 3}'),
        ("html", b"<html>log in first</html>"),
        ("html", b"\xff\xfe"),
    ],
)
def test_an_index_that_answers_nonsense_is_told_as_such(
    published: Index, store: LocalStore, form: str, page: bytes
) -> None:
    published.form, published.page = form, page
    with pytest.raises((FetchError, NetworkError)):
        find_sdist("hello", "1.0", store)


def test_an_index_that_is_not_there_is_a_network_failure(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    with pytest.raises(NetworkError, match="the package index does not answer"):
        find_sdist("hello", "1.0", store)


def test_the_environment_goes_before_pips_own_file(
    published: Index, store: LocalStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text("[global]\nindex-url = http://127.0.0.1:1/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    assert find_sdist("hello", "1.0", store).size == len(DATA)


def test_pips_own_file_is_followed(
    published: Index, store: LocalStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text(f"[global]\nindex-url = {published.url}/simple\n")
    monkeypatch.delenv("PIP_INDEX_URL")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    assert find_sdist("hello", "1.0", store).size == len(DATA)
