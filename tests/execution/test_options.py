"""Options of a build are made once and passed whole: a new one is a line in the table, and its use."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.execution.conftest import Workshop

from rocwright.cli.common import build_options
from rocwright.execution import asked
from rocwright.execution.executor import Task
from rocwright.execution.options import CLICK, BuildOptions, StepOptions
from rocwright.farm.handed import Handed


@dataclass(frozen=True, slots=True, kw_only=True)
class WithRetries(StepOptions):
    """The options of a step, and a new one."""

    retries: int | None = field(default=None, metadata={CLICK: {"words": ("--retries",), "least": 0}})


def test_a_new_option_reaches_the_step_by_its_line_in_the_table(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[WithRetries] = []

    @click.command()
    @build_options(table=WithRetries)
    def command(options: WithRetries) -> None:
        made.append(options)

    assert CliRunner().invoke(command, ["--retries", "7", "--no-resume"]).exit_code == 0
    assert made == [WithRetries(retries=7, resume=False)]
    monkeypatch.setattr(asked, "StepOptions", WithRetries)
    task = Task(step=workshop.step("true"), store=workshop.store.url, jobs=1, options=made[0])
    _, key, text = task.words(jobs=1, report=tmp_path / "report")
    assert asked.Asked.read(key, text).options == made[0]


def test_every_option_of_a_step_travels_to_other_machines(workshop: Workshop) -> None:
    options = StepOptions(engine="podman", compiler_cache=False, resume=False)
    assert all(getattr(options, option.name) != option.default for option in fields(StepOptions))
    build = BuildOptions(jobs=3, engine="podman", compiler_cache=False, resume=False)
    assert build.for_steps() == options
    task = Task(step=workshop.step("true"), store=workshop.store.url, jobs=1, options=options)
    assert Handed.model_validate_json(Handed.of(task, 0).model_dump_json()).options == options
