"""What is asked for on the command line: stacks by name, pins, providers, and what the project file keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rocwheel.errors import InputError
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import load_catalog, the_catalog
from rocwright.cli import cli
from rocwright.cli.lock import command as lock_command
from rocwright.cli.stacks import as_markdown
from rocwright.home import Home
from rocwright.project import project_of
from rocwright.resolve.files import change_request, read_request
from rocwright.resolve.model import Request
from rocwright.verify.standing import standings

PROJECT = """\
# mine
stack = "gfx-smoke"
gpu = ["gfx1151"]   # the box under the desk
base = "debian:sid"

[versions]
gfx-smoke = "0.1.0"
"""


def test_changes_are_written_and_the_rest_of_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "rocwright.toml"
    path.write_text(PROJECT)
    commit = "a" * 40
    change_request(path, {"provider": "distribution", "versions": {"pytorch": "2.8.0", "vllm": f"@{commit}"}})
    request = read_request(path)
    assert request.provider == "distribution"
    assert request.versions == {"gfx-smoke": "0.1.0", "pytorch": "2.8.0", "vllm": f"@{commit}"}
    assert "# the box under the desk" in path.read_text()


def test_changes_that_make_no_request_leave_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "rocwright.toml"
    path.write_text(PROJECT)
    with pytest.raises(InputError):
        change_request(path, {"unknown": "x"})
    assert path.read_text() == PROJECT


@pytest.mark.parametrize("wrong", ["pytorch", "=1", "vllm@main", "vllm@", "a b=1", "x=$(id)", "x=1;2"])
def test_a_pin_that_is_none_is_refused_with_its_two_forms(wrong: str) -> None:
    done = CliRunner().invoke(lock_command, ["gfx-smoke", "--gpu", "gfx1151", "--set", wrong])
    assert done.exit_code == 2
    assert "NAME=VERSION nor NAME@COMMIT" in done.output


def test_what_is_pinned_has_a_lock_of_its_own(tmp_path: Path) -> None:
    plain = Request(stack="gfx-smoke", gpu=("gfx1151",), base="debian:sid")
    pinned = plain.model_copy(update={"versions": {"gfx-smoke": "0.1.0"}})
    home = Home(tmp_path)
    paths = {project_of(one, tmp_path, home).lock_path for one in (plain, pinned)}
    assert len(paths) == 2


def test_stacks_shows_every_row_and_tells_more_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path))
    rows = [(stack.name, row.gpu, row.base) for stack in the_catalog().stacks.values() for row in stack.row]
    done = CliRunner().invoke(cli, ["stacks", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    assert [(one["stack"], one["gpu"], one["base"]) for one in told] == rows
    assert all(one["locks"] and one["steps"] and not one["problem"] for one in told)
    for one in told:
        for seen in one["evidence"]:
            assert seen["source"]
            assert seen["when"]
    one = CliRunner().invoke(cli, ["stacks", "llama-vulkan"])
    assert one.exit_code == 0, one.output
    assert "Vulkan" in one.output
    other = CliRunner().invoke(cli, ["stacks", "llama-vulcan"])
    assert isinstance(other.exception, InputError)


def test_the_table_in_the_documentation_is_what_the_command_says() -> None:
    page = Path(__file__).parents[2] / "docs" / "rows.md"
    assert as_markdown(standings(load_catalog(DATA))) in page.read_text(), (
        "rocwright stacks --markdown, with an empty ROCWRIGHT_HOME, writes the table"
    )
