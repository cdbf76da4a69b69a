"""What `rocwright run` is told and would do nothing with is refused."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from rocwright.cli import cli


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["pytorch", "--jupyter", "--in", "podman"], "--in has no effect on --jupyter"),
        (["pytorch", "--shell", "--port", "80"], "--port has no effect on a program"),
        (["pytorch", "--model", "tiny", "--", "python"], "--model has no effect on a program"),
        (["pytorch", "--jupyter", "--on", "cpu"], "--on has no effect on --jupyter"),
        (["pytorch", "--image", "out", "--env", "A=1"], "--env has no effect on --image"),
        (["llama-vulkan", "--model", "tiny", "--env", "A=1"], "--env has no effect on a server"),
        (["llama-vulkan", "--require", "pandas"], "--require has no effect on a server"),
    ],
)
def test_what_has_no_effect_is_refused(words: list[str], told: str) -> None:
    done = CliRunner().invoke(cli, ["run", *words])
    assert done.exit_code == 2
    assert told in " ".join(done.stderr.split())


def test_a_program_does_not_run_in_docker_and_is_told_of_the_image() -> None:
    done = CliRunner().invoke(cli, ["run", "pytorch", "--in", "docker", "--", "python"])
    assert done.exit_code == 2 and "--image FOLDER" in done.stderr
