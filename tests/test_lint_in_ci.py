"""The action and the pre-commit hook that run `rocwheel lint` for others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from rocwheel.cli import cli
from rocwheel.cli.lint import PROFILES
from rocwheel_samples.wheel_making import NAME, small_wheel

ROOT = Path(__file__).parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
INSTALL, LINT = ACTION["runs"]["steps"]


def run(folder: Path, wheels: str, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The step `lint` as a runner does it, with the rocwheel of this environment."""
    programs = folder / "temp/rocwheel/bin"
    programs.mkdir(parents=True, exist_ok=True)
    program = programs / "rocwheel"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m rocwheel "$@"\n')
    program.chmod(0o755)
    given = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
    given |= {"wheels": wheels} | inputs
    filled = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: given[match[1]], value)
        for name, value in LINT["env"].items()
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", LINT["run"]],
        cwd=folder,
        env=os.environ | filled | {"RUNNER_TEMP": str(folder / "temp")},
        capture_output=True,
        text=True,
    )


def test_the_action_writes_both_reports_and_fails_where_lint_does(tmp_path: Path) -> None:
    small_wheel(tmp_path / "a folder")
    done = run(tmp_path, "a folder/*.whl\n")
    assert done.returncode == 12, done.stderr
    assert "RECORD" in done.stdout
    assert (tmp_path / "rocwheel-lint.sarif").exists()
    assert (tmp_path / "rocwheel-lint.xml").exists()


def test_a_pattern_that_names_nothing_is_an_error_of_the_action(tmp_path: Path) -> None:
    small_wheel(tmp_path)
    done = run(tmp_path, f"{NAME}\nnone/*.whl")
    assert (done.returncode, done.stderr) == (2, "no file is named so: none/*.whl\n")


@pytest.mark.parametrize("name", ["wheels", "profile", "sarif"])
def test_what_a_caller_gives_the_action_is_no_shell(tmp_path: Path, name: str) -> None:
    small_wheel(tmp_path)
    hostile = "$(touch pwned); `touch pwned` \"; touch pwned; '"
    run(tmp_path, **{"wheels": NAME, name: hostile})
    assert not (tmp_path / "pwned").exists()
    assert all("${{" not in step["run"] for step in (INSTALL, LINT))


def test_each_input_of_the_action_is_used_and_its_defaults_are_real() -> None:
    used = set(re.findall(r"inputs\.(\w+)", " ".join(LINT["env"].values())))
    assert used == set(ACTION["inputs"])
    assert ACTION["inputs"]["profile"]["default"] in PROFILES
    folder = re.search(r"\$GITHUB_ACTION_PATH/(packages/\S+)\"", INSTALL["run"])
    assert folder is not None
    assert (ROOT / folder[1] / "pyproject.toml").exists()


def test_the_hook_is_a_command_that_is_there_and_takes_files(tmp_path: Path) -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    program, *words = hook["entry"].split()
    assert program == "rocwheel"
    assert re.search(hook["files"], f"dist/{NAME}")
    assert all((ROOT / one / "pyproject.toml").exists() for one in hook["additional_dependencies"])
    done = CliRunner().invoke(cli, [*words, str(small_wheel(tmp_path))])
    assert done.exit_code == 12, done.output
