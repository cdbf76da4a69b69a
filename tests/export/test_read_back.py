"""versions.env is read, never executed; what is not plain NAME=VALUE is refused, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Command

from rocbase.errors import InputError
from rocwright.catalog.load import builtin_catalog
from rocwright.export.read_back import read_versions, with_versions
from rocwright.plan.resolve.files import read_request
from rocwright.plan.resolve.model import Request

REFUSED = (
    "GFX_SMOKE_VERSION=$(touch owned)",
    "GFX_SMOKE_VERSION=`touch owned`",
    "GFX_SMOKE_VERSION=0.1.0; touch owned",
    "GFX_SMOKE_VERSION=${HOME}",
    "GFX_SMOKE_VERSION='0.1.0",
    'GFX_SMOKE_VERSION="0.1.0',
    "GFX_SMOKE_VERSION=../../etc/passwd",
    "GFX_SMOKE_VERSION=a b",
    "GFX_SMOKE_VERSION=0.1.0\r",
    "GFX_SMOKE_VERSION=a|b",
    "GFX_SMOKE_VERSION=a\\",
    "export GFX_SMOKE_VERSION=0.1.0",
    "touch owned",
    " GFX_SMOKE_VERSION=0.1.0",
    "GFX_SMOKE_VERSION=0.1.0\nGFX_SMOKE_VERSION=0.1.0",
)


@pytest.mark.parametrize("text", REFUSED)
def test_shell_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "versions.env").write_bytes(text.encode())
    with pytest.raises(InputError):
        read_versions(tmp_path / "versions.env")


def test_the_command_refuses_shell_with_one_message_and_writes_nothing(
    rocwright: Command, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    rocwright("init", "--stack", "gfx-smoke", "--gpu", "gfx1151")
    before = (folder / "rocwright.toml").read_bytes()
    (folder / "versions.env").write_text("GFX_SMOKE_VERSION=$(touch owned)\n")
    done = rocwright("import", "versions.env")
    assert done.returncode == 2
    assert done.stderr.count("error[input]") == 1
    assert "Traceback" not in done.stderr
    assert (folder / "rocwright.toml").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["rocwright.toml", "versions.env"]


def test_the_versions_go_into_the_project(rocwright: Command, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    rocwright("init", "--stack", "gfx-smoke", "--gpu", "gfx1151")
    (folder / "versions.env").write_text("# pins\nTARGETS=gfx803,gfx1103\nGFX_SMOKE_VERSION=0.1.0\n")
    done = rocwright("import", "versions.env")
    assert done.returncode == 0, done.stderr
    request = read_request(folder / "rocwright.toml")
    assert request.gpu == ("gfx803", "gfx1103")
    assert request.versions == {"gfx-smoke": "0.1.0"}


def test_an_unknown_name_is_refused() -> None:
    request = Request(stack="gfx-smoke", gpu=("gfx1151",), base="debian:sid")
    with pytest.raises(InputError, match="NOBODY_VERSION"):
        with_versions(request, {"NOBODY_VERSION": "1"}, builtin_catalog())


def test_another_commit_than_the_release_is_taken_as_a_commit() -> None:
    request = Request(stack="llama-vulkan", gpu=("gfx1151",), base="debian:sid")
    known = "0c1e57098bba43ac29e6e3b677cdceebdd22334f"
    same = {"LLAMA_CPP_VERSION": "11312", "LLAMA_CPP_COMMIT": known}
    assert with_versions(request, same, builtin_catalog()).versions == {"llama.cpp": "11312"}
    other = same | {"LLAMA_CPP_COMMIT": "a" * 40}
    assert with_versions(request, other, builtin_catalog()).versions == {"llama.cpp": f"@{'a' * 40}"}
