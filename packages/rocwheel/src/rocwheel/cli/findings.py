"""What was found wrong or worth knowing of a wheel, printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rocwheel.wheels.lint.model import LintFinding

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def judged(path: Path) -> list[LintFinding]:
    """The findings of `path`."""
    from rocwheel.wheels.lint.judge import judge

    return judge(path)


def as_data(findings: Sequence[LintFinding]) -> list[dict[str, Any]]:
    """Findings for --json."""
    from dataclasses import asdict

    return [asdict(one) for one in findings]


def print_findings(findings: Sequence[LintFinding]) -> None:
    """Each finding: how bad, in which file, what, what to do."""
    for one in findings:
        grade = click.style(f"{one.grade:<8}", fg=_COLOURS[one.grade], bold=True)
        click.echo(f"{grade}{one.kind}: {f'{one.path}: ' if one.path else ''}{one.what}")
        if one.next_step:
            click.echo(f"{'':8}{click.style('next', bold=True)}  {one.next_step}")
    if not findings:
        click.echo("no problems with libraries, search paths, tags or RECORD; no leftovers of the build")
