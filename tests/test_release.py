"""A release is refused until its tag, changelog, settings and files agree; its notes are the changelog's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tools.release import notes, projects, version, wrong

from rocwheel_samples.trees import write_tree
from rocwright import __version__

ROOT = Path(__file__).parents[1]

CHANGELOG = """# Changelog

## [Unreleased]

- not yet

## [1.2.0] - 2026-11-22

#### Added

- a thing

## [1.1.0] - 2026-01-01

- an older thing
"""


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A tree that may be released as v1.2.0."""
    write_tree(
        tmp_path,
        {
            "packages/rocwheel/src/rocwheel/version.py": '__version__ = "1.2.0"\n',
            "pyproject.toml": '[project]\nname = "rocwright"\n',
            "packages/rocwheel/pyproject.toml": '[project]\nname = "rocwheel"\n',
            "packages/rocbase/pyproject.toml": '[project]\nname = "rocbase"\n',
            ".github/CODEOWNERS": "* @somebody\n",
            "CHANGELOG.md": CHANGELOG,
            "dist/rocwright-1.2.0-py3-none-any.whl": "",
            "dist/rocwright-1.2.0.tar.gz": "",
            "dist/rocbase-0.1.0-py3-none-any.whl": "",
            "dist/rocbase-0.1.0.tar.gz": "",
            "dist/rocwheel-0.3.0-py3-none-any.whl": "",
            "dist/rocwheel-0.3.0.tar.gz": "",
        },
    )
    return tmp_path


def test_the_notes_are_the_section_of_that_version_alone(ready: Path) -> None:
    assert notes("1.2.0", ready) == "#### Added\n\n- a thing\n"


def test_what_agrees_is_released(ready: Path) -> None:
    assert list(wrong("v1.2.0", ready)) == []


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("packages/rocwheel/src/rocwheel/version.py", '__version__ = "1.3.0"\n', "the tag is v1.2.0"),
        ("CHANGELOG.md", CHANGELOG.replace(" - 2026-11-22", ", not yet released"), "has no section"),
        ("CHANGELOG.md", CHANGELOG.replace("#### Added\n\n- a thing\n", ""), "is empty"),
        (
            "pyproject.toml",
            '[project]\nname = "rocwright"\nurls = { x = "OWNER" }\n',
            "pyproject.toml still has",
        ),
        (".github/CODEOWNERS", "* @OWNER/x\n", "CODEOWNERS still has"),
    ],
)
def test_what_does_not_agree_is_told(ready: Path, name: str, text: str, told: str) -> None:
    (ready / name).write_text(text)
    assert any(told in one for one in wrong("v1.2.0", ready))


@pytest.mark.parametrize("name", ["rocwright-1.2.0-py3-none-any.whl", "rocwheel-0.3.0.tar.gz"])
def test_a_distribution_that_was_not_built_is_told(ready: Path, name: str) -> None:
    (ready / "dist" / name).unlink()
    assert [one for one in wrong("v1.2.0", ready) if "make dist" in one]


def test_a_file_of_another_version_is_no_release_of_this_one(ready: Path) -> None:
    (ready / "dist/rocwright-1.2.0.tar.gz").rename(ready / "dist/rocwright-1.1.0.tar.gz")
    assert [one for one in wrong("v1.2.0", ready) if "rocwright-1.2.0.tar.gz" in one]


def test_this_tree_has_its_version_where_a_release_looks_for_it() -> None:
    assert version() == __version__
    assert "rocwright" in projects()


@pytest.mark.parametrize("hooks", [True, False])
def test_a_wheel_takes_the_packages_from_its_checkout_and_one_of_a_release_by_name(
    tmp_path: Path, hooks: bool
) -> None:
    line = next(
        line for line in (ROOT / "Makefile").read_text().splitlines() if "HATCH_BUILD_NO_HOOKS" in line
    )
    assert "SOURCE_DATE_EPOCH" in line, "a release is built without hooks"
    env = os.environ | ({} if hooks else {"HATCH_BUILD_NO_HOOKS": "true"})
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, env=env, capture_output=True, check=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        metadata = wheel.read(f"rocwright-{__version__}.dist-info/METADATA").decode()
    folders = (ROOT / "packages").iterdir()
    expected = {f"{each.name} @ {each.as_uri()}" if hooks else f"{each.name}<0.2,>=0.1" for each in folders}
    needed = re.findall(r"(?m)^Requires-Dist: (roc.*)$", metadata)
    assert {*needed} == expected and len(needed) == len(expected)


def test_the_editable_wheel_has_all_sources_and_needs_what_they_need(tmp_path: Path) -> None:
    build = f"from hatchling.build import build_editable; build_editable({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, capture_output=True, check=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        metadata = wheel.read(f"rocwright-{__version__}.dist-info/METADATA").decode()
        sources = wheel.read("_rocwright.pth").decode().splitlines()
    assert {*sources} == {str(ROOT / "src"), *map(str, ROOT.glob("packages/*/src"))}
    assert "Requires-Dist: auditwheel" in metadata and "Requires-Dist: roc" not in metadata


def test_the_wheel_has_the_version_of_the_source_and_all_data(tmp_path: Path) -> None:
    env = os.environ | {"SOURCE_DATE_EPOCH": "1763769600"}
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / f"rocwright-{__version__}-py3-none-any.whl") as wheel:
        names = set(wheel.namelist())
        metadata = wheel.read(f"rocwright-{__version__}.dist-info/METADATA").decode()
    assert f"\nVersion: {__version__}\n" in metadata
    data = (ROOT / "src/rocwright/catalog/data").rglob("*.toml")
    assert {str(path.relative_to(ROOT / "src")) for path in data} <= names
    assert "rocwright/py.typed" in names
