"""A build that takes long or much starts after a question, or with --yes."""

from __future__ import annotations

import click
import pytest

from rocbase.errors import InputError
from rocwright.execution.estimate import Left
from rocwright.execution.requirements import Outlook
from rocwright.home import Home
from rocwright.plan.resolve.model import Request
from rocwright.project import project_of
from rocwright.serving import wheels
from rocwright.serving.verbs.run import command
from rocwright.serving.verbs.run_program import agreement


@pytest.mark.parametrize(
    ("seconds", "disk", "unknown", "asks"),
    [(299, 10**9, (), 0), (301, 0, (), 1), (0, 3 * 10**9, (), 1), (0, 0, ("image",), 1)],
)
def test_what_takes_long_or_much_is_asked_about(
    monkeypatch: pytest.MonkeyPatch,
    home: Home,
    seconds: float,
    disk: int,
    unknown: tuple[str, ...],
    asks: bool,
) -> None:
    left = Left(seconds=seconds, unknown=unknown)
    forecast = Outlook(left=left, sources=(), disk=disk, memory=0, jobs=2, wanted=2)
    monkeypatch.setattr(wheels, "outlook_here", lambda *_: forecast)
    monkeypatch.setattr(wheels, "expected", lambda *_: {})
    project = project_of(Request(stack="gfx-smoke", gpu=("gfx803",), base="debian:sid"), home.path, home)
    lines: list[str] = []
    wheels.ask(project, [], lines.append)
    assert len(lines) == asks


def _context() -> click.Context:
    return click.Context(command, info_name="run", obj=None)


def test_without_a_terminal_it_is_refused_and_yes_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    context = _context()
    context.params["stack"] = "pytorch"
    with pytest.raises(InputError, match="pytorch has to be built first") as caught:
        agreement(context, yes=False)("3 h 34 min, 48 GiB disk")
    assert "--yes" in caught.value.next_step
    agreement(context, yes=True)("3 h 34 min")
    assert capsys.readouterr().err.count("needs  3 h 34 min") == 2


def test_at_a_terminal_the_answer_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    answers = iter([True, False])

    def confirm(*_: object, **how: object) -> None:
        if not next(answers):
            raise click.Abort

    monkeypatch.setattr(click, "confirm", confirm)
    agreement(_context(), yes=False)("1 h")
    with pytest.raises(click.Abort):
        agreement(_context(), yes=False)("1 h")
