"""Wheels that somebody else built, against what their lock gives here: built for real, with a tiny root."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from samples.project import make_sources, open_project, put_roots, wheel_recipe
from tests.conftest import Command

from rocwheel.wheels.canonicalize import normalise
from rocwheel_samples.wheel_making import FILES, NAME, small_wheel
from rocwright.home import Home
from rocwright.model.step_environment import EPOCH

COMPONENT = "small"
CONTENT = {
    **FILES,
    "small/made.txt": b"built 2026-01-02 03:04:05 in /build/one/src by cc\n",
    "small/list.txt": b"one\ntwo\nthree\n",
}
Change = Callable[[dict[str, bytes]], dict[str, bytes]]


def wheel_of(folder: Path, files: dict[str, bytes] = CONTENT) -> Path:
    """A wheel in canonical form, with a RECORD."""
    folder.mkdir(parents=True, exist_ok=True)
    raw = small_wheel(folder / "raw", files)
    return normalise(raw, folder, epoch=EPOCH, fix_record=True).path


def with_lock(tmp_path: Path, home: Home, root: Path) -> dict[str, str]:
    """A lock whose component gives that wheel, where nothing is built yet; the environment of its catalog."""
    make_sources(tmp_path / "sources", {COMPONENT: wheel_recipe(wheel_of(tmp_path / "built"))})
    put_roots(open_project(tmp_path / "sources", home.path), root)
    shutil.copy(tmp_path / "sources/rocwright.lock", tmp_path / "project/other.lock")
    return {"ROCWRIGHT_CATALOG": str(tmp_path / "sources/catalog")}


@pytest.mark.usefixtures("engine")
def test_the_wheel_that_the_lock_gives_is_the_same(
    tmp_path: Path, home: Home, tiny_root: Path, rocwright: Command
) -> None:
    env = with_lock(tmp_path, home, tiny_root)
    theirs = tmp_path / "project" / NAME
    shutil.copy(tmp_path / "built" / NAME, theirs)
    told = rocwright("reproduce", NAME, "--lock", "other.lock", env=env)
    assert told.returncode == 0, told.stderr
    assert f"same     small 1.0  {NAME}" in told.stdout
    assert "in the store already" not in told.stdout
    assert not (tmp_path / "project/rocwright-out").exists(), "nothing is laid out"
    told = rocwright("reproduce", NAME, "--lock", "other.lock", env=env)
    assert "in the store already" in told.stdout


@pytest.mark.usefixtures("engine")
def test_the_sbom_in_a_wheel_is_no_difference(
    tmp_path: Path, home: Home, tiny_root: Path, rocwright: Command
) -> None:
    from rocwright.provenance.embed import with_sbom

    env = with_lock(tmp_path, home, tiny_root)
    with_sbom(tmp_path / "built" / NAME, b'{"of": "another machine"}', tmp_path / "project" / NAME)
    told = rocwright("reproduce", NAME, "--lock", "other.lock", "--json", env=env)
    assert told.returncode == 0, told.stderr + told.stdout
    found = json.loads(told.stdout)
    assert found["theirs"] == found["ours"] != found["as_built"]
    assert found["sbom"] == "small-1.0.dist-info/sboms/rocwright.cdx.json"


@pytest.mark.usefixtures("engine")
def test_each_member_that_differs_is_told_with_its_reason(
    tmp_path: Path, home: Home, tiny_root: Path, rocwright: Command
) -> None:
    env = with_lock(tmp_path, home, tiny_root)
    other = CONTENT | {
        "small/__init__.py": b"import os\nos.system('touch ran')\n",
        "small/made.txt": b"built 2026-05-06 07:08:09 in /home/me/src by cc\n",
        "small/list.txt": b"two\none\nthree\n",
        "small/more.py": b"more = 1\n",
    }
    shutil.copy(wheel_of(tmp_path / "theirs", other), tmp_path / "project" / NAME)
    told = rocwright("reproduce", NAME, "--lock", "other.lock", "--json", env=env)
    assert told.returncode == 12, told.stderr
    members = {one["path"]: one["why"] for one in json.loads(told.stdout)["members"]}
    assert members == {
        "small/__init__.py": ["content: line 1: import os -> answer = 42"],
        "small/list.txt": ["order: the same lines in another order"],
        "small/made.txt": [
            "time: 2026-05-06 07:08:09 -> 2026-01-02 03:04:05",
            "path: /home/me/src -> /build/one/src",
        ],
        "small/more.py": ["only in theirs"],
    }
    assert not [*tmp_path.rglob("ran")], "nothing of it was run"
    told = rocwright("reproduce", NAME, "--lock", "other.lock", env=env)
    assert f"DIFFERS  small 1.0  {NAME}" in told.stdout
    assert "why: path: /home/me/src -> /build/one/src" in told.stdout


@pytest.mark.usefixtures("engine")
def test_a_zip_that_is_written_otherwise_is_told_as_such(
    tmp_path: Path, home: Home, tiny_root: Path, rocwright: Command
) -> None:
    env = with_lock(tmp_path, home, tiny_root)
    with (
        zipfile.ZipFile(tmp_path / "built" / NAME) as ours,
        zipfile.ZipFile(tmp_path / "project" / NAME, "w") as theirs,
    ):
        for name in reversed(ours.namelist()):
            theirs.writestr(zipfile.ZipInfo(name, (2026, 5, 6, 7, 8, 10)), ours.read(name))
    told = rocwright("reproduce", NAME, "--lock", "other.lock", env=env)
    assert told.returncode == 12, told.stderr
    assert "the same content, written differently" in told.stdout
    assert "order: the files are in another order" in told.stdout
    assert "time: 6 files, 2026-05-06 07:08:10 -> 2025-01-01 00:00:00" in told.stdout
    assert "compression: of" in told.stdout
    assert "RECORD: " not in told.stdout


@pytest.mark.parametrize(
    ("filename", "says"),
    [
        ("other-1.0-py3-none-any.whl", "the lock has no component that gives a wheel other"),
        ("small-2.0-py3-none-any.whl", "the lock has small 1.0, and the wheel is 2.0"),
        ("small.whl", "small.whl is not a valid wheel filename"),
        ("small.zip", "small.zip is not the file of a wheel"),
    ],
)
def test_what_the_lock_cannot_give_is_refused_before_anything_is_built(
    tmp_path: Path, home: Home, tiny_root: Path, rocwright: Command, filename: str, says: str
) -> None:
    env = with_lock(tmp_path, home, tiny_root)
    (tmp_path / "project" / filename).write_bytes(b"x")
    told = rocwright("reproduce", filename, "--lock", "other.lock", env=env)
    assert told.returncode == 2, told.stdout + told.stderr
    assert says in told.stderr
    assert not [*home.runs.glob("*")]


def test_a_damaged_wheel_is_refused_before_anything_is_built(
    tmp_path: Path, home: Home, tiny_root: Path, rocwright: Command
) -> None:
    env = with_lock(tmp_path, home, tiny_root)
    (tmp_path / "project" / NAME).write_bytes((tmp_path / "built" / NAME).read_bytes()[:-30])
    told = rocwright("reproduce", NAME, "--lock", "other.lock", env=env)
    assert told.returncode == 12, told.stdout + told.stderr
    assert "the file is truncated" in told.stderr
    assert not [*home.runs.glob("*")]
