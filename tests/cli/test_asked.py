"""What is asked for on the command line: stacks by name, pins, providers, and what the project file keeps."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.conftest import Command

from rocbase.errors import ConflictError, FailureClass, InputError
from rocwheel_samples.tables import each
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import load_catalog, the_catalog
from rocwright.cli import cli
from rocwright.cli.lock import command as lock_command
from rocwright.home import Home
from rocwright.model.architecture import Architecture, host_architecture
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import change_request, read_request, write_lock
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.upstream import OfflineUpstream
from rocwright.project import project_of

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


@each("wrong", ["pytorch", "=1", "vllm@main", "vllm@", "a b=1", "x=$(id)", "x=1;2"])
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


def init(*words: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.chdir(folder)
    monkeypatch.delattr("rocwright.plan.resolve.network.NetworkUpstream")
    return CliRunner().invoke(cli, ["init", "--arch", "x86_64", *words])


def test_init_writes_no_base_that_lock_refuses_and_names_those_that_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--stack", "pytorch", "--gpu", "gfx803", "--base", "ubuntu:24.04")
    done = init(*words, folder=tmp_path, monkeypatch=monkeypatch)
    assert isinstance(done.exception, ConflictError)
    assert "--base rocm-ubuntu-24.04:6.4 --provider amd" in done.exception.next_step
    assert not (tmp_path / "rocwright.toml").exists()


def test_init_takes_what_lock_takes_and_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--stack", "pytorch", "--gpu", "gfx1151", "--base", "debian:sid", "--with", "triton")
    accepted = ("--accept-missing", "rocblas", "--accept-missing", "rocsparse")
    more = ("--provider", "distribution", *accepted, "--set", "pytorch=2.9.1")
    done = init(*words, *more, folder=tmp_path, monkeypatch=monkeypatch)
    assert done.exit_code == 0, done.output
    assert "rocblas has no code for gfx1151, as accepted" in done.output
    request = read_request(tmp_path / "rocwright.toml")
    assert (request.provider, request.extra, request.accept_missing) == (
        "distribution",
        ("triton",),
        ("rocblas", "rocsparse"),
    )
    assert request.versions == {"pytorch": "2.9.1"}


def other_architecture() -> Architecture:
    """One that this machine is not."""
    return next(one for one in Architecture if one is not host_architecture())


def test_arch_goes_into_the_project_file_and_this_machines_is_left_out(
    tmp_path: Path, rocwright: Command
) -> None:
    other = other_architecture()
    words = ("init", "--stack", "llama-vulkan", "--gpu", "gfx1151", "--base", "debian:sid", "--force")
    path = tmp_path / "project" / "rocwright.toml"
    assert rocwright(*words, "--arch", other).returncode == 0
    assert f'architecture = "{other}"' in path.read_text()
    assert read_request(path).architecture is other
    assert rocwright(*words).returncode == 0
    assert "architecture" not in path.read_text()


@pytest.mark.parametrize(
    ("gpu", "told"),
    [
        ("gfx1151", r"rocm 7\.\S+ \(distribution\) .* gfx1151 · debian:experimental @"),
        ("gfx1103", r"rocm \S+ \(therock-wheels\) .* gfx1103 · rocm-ubuntu-\S+ @"),
    ],
)
def test_the_plan_tells_which_base_was_taken_and_where_rocm_is_from(
    rocwright: Command, gpu: str, told: str
) -> None:
    planned = rocwright("plan", "llama-hip", "--gpu", gpu)
    assert planned.returncode == 0, planned.stderr
    assert re.search(rf"^lock   {told}", planned.stderr, re.MULTILINE), planned.stderr


def test_a_stack_for_another_architecture_is_planned_here_and_not_built(
    home: Home, tmp_path: Path, rocwright: Command
) -> None:
    other = other_architecture()
    request = Request(stack="llama-vulkan", gpu=("gfx1151",), base="debian:sid", architecture=other)
    words = ("llama-vulkan", "--gpu", "gfx1151", "--base", "debian:sid", "--arch", other)
    made = make_lock(request, load_catalog(DATA), OfflineUpstream(other), lambda _: None)
    write_lock(project_of(request, tmp_path, home).lock_path, made)
    planned = rocwright("plan", *words, "--json")
    assert planned.returncode == 0, planned.stderr
    keys = [step.key for step in make_plan(made, load_catalog(DATA)).steps]
    assert [one["key"] for one in json.loads(planned.stdout)] == keys
    told = f"cannot build for {other} (it is {host_architecture()})"
    assert f"this machine: {told}" in rocwright("plan", *words).stderr
    built = rocwright("build", *words)
    assert built.returncode == FailureClass.INPUT.exit_code
    assert f"this machine {told}" in built.stderr
    assert "plan" not in built.stderr, "it is refused before anything else is said or done"


def test_a_build_for_another_architecture_is_refused_before_anything_is_locked(
    home: Home, rocwright: Command
) -> None:
    other = other_architecture()
    built = rocwright("build", "llama-vulkan", "--gpu", "gfx1151", "--base", "debian:sid", "--arch", other)
    assert built.returncode == FailureClass.INPUT.exit_code
    assert f"this machine cannot build for {other}" in built.stderr
    assert not home.locks.exists()


def test_an_architecture_that_a_base_has_not_is_refused_with_what_it_has(rocwright: Command) -> None:
    done = rocwright(
        "init", "--stack", "rocm", "--gpu", "gfx1103", "--base", "arch:2025-10-28", "--arch", "aarch64"
    )
    assert done.returncode == FailureClass.INPUT.exit_code
    assert "the base arch is not there for aarch64" in done.stderr
    told = " ".join(done.stderr.split())
    assert "--arch x86_64, or one of the bases that rocm has for it: ubuntu:24.04" in told


def test_an_architecture_that_nobody_knows_is_a_mistake_of_usage(rocwright: Command) -> None:
    done = rocwright("plan", "llama-vulkan", "--arch", "sparc")
    assert done.returncode == 2
    assert "x86_64" in done.stderr


def test_an_export_without_a_lock_or_a_row_asks_nothing_outside_and_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr("rocwright.plan.resolve.network.NetworkUpstream")
    words = [
        "export",
        "pipeline",
        "llama-hip",
        "--gpu",
        "gfx908",
        "--base",
        "debian:sid",
        "--arch",
        "x86_64",
    ]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert "by the catalog alone" in done.output
    assert "fills them in: export again" in done.output
    assert (tmp_path / "export/pipeline/build_pipeline.sh").is_file()
    assert not (tmp_path / "rocwright.lock").exists()
