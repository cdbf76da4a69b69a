"""What `rocwright run` is told and would do nothing with is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.cli import cli
from rocwright.plan.resolve.folder import PROJECT
from rocwright.serving.asked import asked_for


@each(
    ("words", "told"),
    [
        (["pytorch", "--jupyter", "--in", "podman"], "--in has no effect on --jupyter"),
        (["pytorch", "--shell", "--port", "80"], "--port has no effect on a program"),
        (["pytorch", "--model", "tiny", "--", "python"], "--model has no effect on a program"),
        (
            ["pytorch", "--dry-run", "--in", "podman", "--", "python"],
            "--dry-run prints the command that runs a program in host",
        ),
        (["pytorch", "--jupyter", "--on", "cpu"], "--on has no effect on --jupyter"),
        (["pytorch", "--image", "out", "--env", "A=1"], "--env has no effect on --image"),
        (["pytorch", "--jupyter", "--env", "A=1"], "--env has no effect on --jupyter"),
        (["llama-vulkan", "--env", "A=1\nB=2"], "'A=1\\nB=2' is not NAME=VALUE on a single line"),
        (["pytorch", "--require", "two words", "--", "true"], "'two words' is no requirement such as"),
        (["llama-vulkan", "--env", "A=\x1b[2J"], "is not NAME=VALUE on a single line"),
        (
            ["pytorch", "--with", "vae=a.safetensors", "--", "python"],
            "--with NAME=FILE has no effect on a program",
        ),
        (["--set", "pytorch=2.6.0", "--", "python"], "--set, --with NAME and --accept-missing want a STACK"),
        (["--with", "gloo", "--model", "tiny"], "--accept-missing want a STACK"),
        (["--accept-missing", "rocblas", "--model", "tiny"], "--accept-missing want a STACK"),
        (["pytorch", "--set", "pytorch", "--", "python"], "neither NAME=VERSION nor NAME@COMMIT"),
    ],
)
def test_what_has_no_effect_is_refused(words: list[str], told: str) -> None:
    done = CliRunner().invoke(cli, ["run", *words])
    assert done.exit_code == 2
    assert told in " ".join(done.stderr.split())


def test_a_program_does_not_run_in_docker_and_is_told_of_the_image() -> None:
    done = CliRunner().invoke(cli, ["run", "pytorch", "--in", "docker", "--", "python"])
    assert done.exit_code == 2 and "--image FOLDER" in done.stderr


@each("words", [["--", "true"], ["--shell"], ["--jupyter"], ["--dry-run", "--", "true"]])
def test_in_the_home_itself_nothing_is_locked_or_built(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "me"
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder)
    for name in ("known_environment", "environment"):
        monkeypatch.setattr(f"rocwright.serving.programs.{name}", pytest.fail)
    done = CliRunner().invoke(cli, ["run", "pytorch", *words])
    assert "your home is in it" in str(done.exception)
    assert list(folder.iterdir()) == []


def test_a_dry_run_makes_no_environment_for_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocwright.serving.programs.known_environment", lambda *_, **__: None)
    monkeypatch.setattr("rocwright.serving.programs.environment", pytest.fail)
    refused = CliRunner().invoke(cli, ["run", "pytorch", "--dry-run", "--", "true"])
    assert "pytorch is not installed here yet" in str(refused.exception)
    refused = CliRunner().invoke(cli, ["run", "vllm", "--from", "built", "--dry-run", "--", "true"])
    assert "vllm is not installed here yet" in str(refused.exception)


@pytest.mark.parametrize("words", [["--", "true"], ["--model", "tiny"]])
def test_pins_and_optional_components_are_those_of_a_build(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A torch that was built `--with gloo` is another: without these words run would build the plain one."""
    asked: list[dict[str, object]] = []

    def project(*named: str, **how: object) -> None:
        asked.append({"stack": named[0]} | how)
        raise InputError("as far as this", cause="", next_step="")

    monkeypatch.setattr("rocwright.api.projects.project", project)
    pins = ["--set", "pytorch=2.6.0", "--with", "gloo", "--accept-missing", "rocblas"]
    pins += ["--gpu", "gfx1151", "--base", "debian:experimental"]
    done = CliRunner().invoke(cli, ["run", "pytorch", *pins, *words])
    assert "as far as this" in str(done.exception)
    [one] = asked
    assert one["stack"] == "pytorch"
    assert one["versions"] == {"pytorch": "2.6.0"}
    assert one["extra"] == ("gloo",)
    assert one["accept_missing"] == ("rocblas",)


def test_a_server_of_the_projects_stack_takes_the_projects_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / PROJECT).write_text('stack = "llama-vulkan"\ngpu = ["gfx803"]\nbase = "debian:sid"\n')
    monkeypatch.chdir(tmp_path)
    named: list[object] = []

    def project(*words: str, **_: object) -> None:
        named.extend(words)
        raise InputError("as far as this", cause="", next_step="")

    monkeypatch.setattr("rocwright.api.projects.project", project)
    CliRunner().invoke(cli, ["run", "llama-vulkan", "--model", "tiny"])
    assert named == ["llama-vulkan", "", ""]


def test_what_was_had_before_does_not_count_after_the_project_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = asked_for(["pytorch"])
    assert asked_for(["pytorch"]) == before
    (tmp_path / PROJECT).write_text('stack = "pytorch"\n')
    assert asked_for(["pytorch"]) != before
