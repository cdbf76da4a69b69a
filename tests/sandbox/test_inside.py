"""The command that runs inside: what it sets, what it tells, and what it refuses."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.sandbox import inside
from rocwright.sandbox.model import SandboxJob
from tests.sandbox.sandbox_jobs import job

SHOW = ("/bin/sh", "-c", 'pwd; umask; echo "$ONLY-$HOME"; echo to-errors >&2; exit 7')


def ran(command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"HOME": "/outside"})


@pytest.mark.parametrize("command", [inside.plain, inside.below_shell])
def test_on_a_terminal_nothing_is_told_and_errors_stay_errors(
    tmp_path: Path, command: Callable[[SandboxJob], tuple[str, ...]]
) -> None:
    done = ran(command(job(*SHOW, env={"ONLY": "this"}, workdir=str(tmp_path))))
    assert done.stdout.splitlines() == [str(tmp_path), "0022", "this-"]
    assert (done.stderr, done.returncode) == ("to-errors\n", 7)
    nowhere = ran(command(job(*SHOW, workdir=str(tmp_path / "nowhere"))))
    assert (nowhere.stdout, nowhere.stderr[:4], nowhere.returncode) == ("", "sh: ", 125)


def test_the_begin_is_told_with_the_token_and_errors_become_output(tmp_path: Path) -> None:
    done = ran(inside.told(job(*SHOW, env={"ONLY": "this"}, workdir=str(tmp_path)), "a-token"))
    assert done.stdout.splitlines() == ["a-token begin", str(tmp_path), "0022", "this-", "to-errors"]
    assert (done.stderr, done.returncode) == ("", 7)
    nowhere = ran(inside.told(job(*SHOW, workdir=str(tmp_path / "nowhere")), "a-token"))
    assert nowhere.stdout.splitlines()[-1] == "a-token nowhere"
    assert nowhere.returncode == 125


def test_a_token_is_new_each_time_and_long_enough_that_none_guesses_it() -> None:
    tokens = {inside.new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch("rocwright-[0-9a-f]{24}", token) for token in tokens)


@each("name", ["", "-u", "-", "a=b", "=", "-i=x"])
def test_a_name_that_env_would_take_for_something_else_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="is not the name of an environment variable"):
        inside.plain(job("true", env={name: "x"}))


def test_a_job_without_a_command_is_refused() -> None:
    with pytest.raises(InputError, match="a job needs a command"):
        inside.told(job(), "a-token")
