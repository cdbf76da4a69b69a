"""Patch files and series of others, read as quilt reads them, and never out of their folder."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwright.sources.patching import foreign
from rocwright.sources.patching.foreign import read_patches


def series(folder: Path, text: str, **patches: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "series").write_text(text)
    for name, data in patches.items():
        (folder / name.replace("_", ".")).write_bytes(data)
    return folder


def test_a_series_is_read_in_its_order_with_its_options_and_comments(tmp_path: Path) -> None:
    folder = series(
        tmp_path / "patches",
        "# of Debian\nb.patch -p0 # why\n\na.patch -pab\n  c.patch -p2 -R\n",
        a_patch=b"a",
        b_patch=gzip.compress(b"b"),
        c_patch=b"\xe9",
    )
    found = [(one.name, one.text, one.strip, one.reverse) for one in read_patches([folder])]
    assert found == [("b.patch", "b", 0, False), ("a.patch", "a", 1, False), ("c.patch", "\xe9", 2, True)]
    assert read_patches([folder / "series"]) == read_patches([folder])
    assert {one.strip for one in read_patches([folder], strip=3)} == {3}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("../outside.patch\n", "points outside"),
        ("/etc/passwd\n", "points outside"),
        ("link.patch\n", "through a link"),
        ("a.patch --dry-run\n", "neither -pN nor -R"),
        ("lost.patch\n", "there is no patch"),
    ],
)
def test_a_series_that_leads_elsewhere_is_refused(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "outside.patch").write_text("secret")
    folder = series(tmp_path / "patches", text, a_patch=b"a")
    (folder / "link.patch").symlink_to(tmp_path / "outside.patch")
    with pytest.raises(InputError) as error:
        read_patches([folder])
    assert why in f"{error.value.message} {error.value.cause}"


@pytest.mark.parametrize("data", [b"\x1f\x8bjunk", gzip.compress(b"text" * 99)[:-9]], ids=["none", "cut"])
def test_damaged_gzip_is_told(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.patch.gz").write_bytes(data)
    with pytest.raises(InputError, match="cannot be used"):
        read_patches([tmp_path / "a.patch.gz"])


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "LARGEST", 1000)
    (tmp_path / "a.patch.gz").write_bytes(gzip.compress(bytes(10_000_000)))
    with pytest.raises(InputError) as error:
        read_patches([tmp_path / "a.patch.gz"])
    assert "more than" in error.value.cause


def test_a_folder_without_a_series_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without a series"):
        read_patches([tmp_path])
