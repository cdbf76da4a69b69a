"""Python requirements resolved to exact wheels, at an index served here, by pip itself."""

from __future__ import annotations

import io
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from tests.sources.conftest import Index

from rocwright.errors import ConflictError, InputError, NetworkError
from rocwright.plan.model import IndexOrigin
from rocwright.sources.index import download, resolve
from rocwright.sources.pins import check_pin
from rocwright.store.local import LocalStore


def wheel(name: str, version: str, *needs: str) -> bytes:
    """The bytes of an empty wheel that needs others."""
    said = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    said += "".join(f"Requires-Dist: {one}\n" for one in needs)
    folder = f"{name}-{version}.dist-info"
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(f"{folder}/METADATA", said)
        archive.writestr(f"{folder}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{folder}/RECORD", "")
    return target.getvalue()


@pytest.fixture
def published(index: Index) -> Index:
    """maker needs helper; each in several versions, one of them for another Python."""
    index.files["maker"] = {
        f"maker-{version}-py3-none-any.whl": wheel("maker", version, "helper>=2")
        for version in ("3.9", "4.0", "4.1")
    }
    index.files["helper"] = {
        "helper-1.0-py3-none-any.whl": wheel("helper", "1.0"),
        "helper-2.0-cp313-cp313-manylinux_2_28_x86_64.whl": wheel("helper", "2.0"),
        "helper-3.0-cp399-cp399-manylinux_2_28_x86_64.whl": wheel("helper", "3.0"),
    }
    return index


def test_all_that_is_needed_is_pinned_for_that_python_with_hash_and_size(
    published: Index, store: LocalStore, tmp_path: Path
) -> None:
    pins = resolve(("maker<4",), "3.13", "x86_64", store)
    assert [pin.filename for pin in pins] == [
        "helper-2.0-cp313-cp313-manylinux_2_28_x86_64.whl",
        "maker-3.9-py3-none-any.whl",
    ]
    for pin in pins:
        download(pin, tmp_path)
        check_pin(tmp_path / pin.filename, pin)


def test_another_index_may_be_named_and_is_in_the_pin(
    published: Index, store: LocalStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    endpoint = f"{published.url}/simple"
    (pin,) = resolve(("helper==1.0",), "3.13", "x86_64", store, endpoint=endpoint)
    assert pin.origin == IndexOrigin(project="helper", version="1.0", index=endpoint)
    assert pin.sha256 == sha256(published.files["helper"][pin.filename]).hexdigest()
    download(pin, tmp_path)
    check_pin(tmp_path / pin.filename, pin)


def test_an_index_that_tells_no_sizes_makes_the_files_be_looked_at(
    published: Index, store: LocalStore
) -> None:
    published.form = "html"
    (pin,) = resolve(("helper==1.0",), "3.13", "x86_64", store)
    assert pin.size == len(published.files["helper"][pin.filename])
    assert store.has(pin.sha256, pin.size)


def test_requirements_that_none_fit_are_a_conflict_in_pips_words(published: Index, store: LocalStore) -> None:
    with pytest.raises(ConflictError, match=r"no Python packages for Python 3\.12 satisfy maker") as caught:
        resolve(("maker",), "3.12", "x86_64", store)
    assert "helper" in caught.value.detail


def test_what_is_no_requirement_never_becomes_an_option(published: Index, store: LocalStore) -> None:
    for text in ("--extra-index-url=http://elsewhere", "-r /etc/passwd", "a b c"):
        with pytest.raises(InputError, match="is not a Python requirement"):
            resolve((text,), "3.13", "x86_64", store)


def test_no_index_is_a_network_failure(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(NetworkError, match="the package index does not answer"):
        resolve(("maker",), "3.13", "x86_64", store, endpoint="http://127.0.0.1:9/simple")
