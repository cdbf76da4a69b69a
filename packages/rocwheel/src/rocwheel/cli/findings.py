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

    return [asdict(finding) for finding in findings]


def print_findings(findings: Sequence[LintFinding]) -> None:
    """Each finding: how bad, in which file, what, what to do."""
    for finding in findings:
        grade = click.style(f"{finding.grade:<8}", fg=_COLOURS[finding.grade], bold=True)
        click.echo(f"{grade}{finding.kind}: {f'{finding.path}: ' if finding.path else ''}{finding.what}")
        if finding.next_step:
            click.echo(f"{'':8}{click.style('next', bold=True)}  {finding.next_step}")
    if not findings:
        click.echo("no problems with libraries, search paths, tags or RECORD; no leftovers of the build")
