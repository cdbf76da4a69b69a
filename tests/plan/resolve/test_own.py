"""A stack that is named in a project's folder is the project's, or the options contradict its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rocbase.errors import InputError
from rocwright import api
from rocwright.plan.resolve.folder import PROJECT

ONE = 'stack = "pytorch"\ngpu = ["gfx803"]\nbase = "debian:sid"\nversions = { pytorch = "2.6.0" }\n'
MATRIX = '[[matrix]]\nstack = ["gfx-smoke"]\ngpu = ["gfx803", "gfx1151"]\nbase = ["debian:sid"]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / PROJECT).write_text(ONE + MATRIX)
    (tmp_path / "below").mkdir()
    return tmp_path / "below"


def test_the_stack_of_the_project_takes_all_from_its_file(folder: Path) -> None:
    project = api.project("pytorch", "auto", folder=folder, home=folder / "home")
    assert (project.request.gpu, project.request.base) == (("gfx803",), "debian:sid")
    assert project.request.versions == {"pytorch": "2.6.0"}
    assert project.lock_path == folder.parent / "rocwright.lock"


def test_options_that_agree_are_taken(folder: Path) -> None:
    versions = {"pytorch": "2.6.0"}
    project = api.project("pytorch", "gfx803", "debian:sid", versions=versions, folder=folder)
    assert project.lock_path == folder.parent / "rocwright.lock"


@pytest.mark.parametrize(
    "options",
    [{"gpu": "gfx1151"}, {"base": "debian:experimental"}, {"versions": {"pytorch": "2.5.1"}}],
)
def test_options_that_contradict_are_refused(folder: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="contradict") as caught:
        api.project("pytorch", folder=folder, **options)
    assert "pytorch --base debian:sid --gpu gfx803" in caught.value.cause


def test_of_several_rows_one_is_named(folder: Path) -> None:
    with pytest.raises(InputError, match="2 rows for gfx-smoke"):
        api.project("gfx-smoke", folder=folder)
    row = api.project("gfx-smoke", "gfx1151", folder=folder, home=folder / "home")
    assert row.request.gpu == ("gfx1151",)
    assert row.lock_path.parent == folder / "home/locks"


def test_another_stack_is_not_the_projects(folder: Path) -> None:
    other = api.project("llama-vulkan", "gfx1151", folder=folder, home=folder / "home")
    assert other.lock_path.parent == folder / "home/locks"
