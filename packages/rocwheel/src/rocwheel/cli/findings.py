"""What was found wrong or worth knowing of a wheel, printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocbase.terminal import columns
from rocbase.units import count

if TYPE_CHECKING:
    from rocwheel.wheels.lint.model import LintFinding

# The width of a line in a file or a pipe: room for a path and a sentence.
LINE = 160

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def judged(path: Path) -> list[LintFinding]:
    """The findings of `path`."""
    from rocwheel.wheels.lint.judge import judge

    return judge(path)


def as_data(findings: Sequence[LintFinding]) -> list[dict[str, Any]]:
    """Findings for --json."""
    from dataclasses import asdict

    return [asdict(finding) for finding in findings]


def print_findings(findings: Sequence[LintFinding], *, details: bool = False) -> None:
    """Print a line for each finding; with `details` all of it, and what to do."""
    width = max(columns() or LINE, 80) - 8
    for finding in findings:
        grade = click.style(f"{finding.grade:<8}", fg=_COLOURS[finding.grade], bold=True)
        line = _whole(finding) if details else _short(finding, width)
        click.echo(f"{grade}{line}")
        if details and finding.next_step:
            click.echo(f"{'':8}{click.style('next', bold=True)}  {finding.next_step}")


def print_total(findings: Sequence[LintFinding], *, details: bool = False) -> None:
    """Print how many findings there are of each grade, and the option that explains them."""
    if not findings:
        click.echo("no problems with libraries, search paths, tags or RECORD; no leftovers of the build")
        return
    numbers = Counter(str(finding.grade) for finding in findings)
    total = ", ".join(count(numbers[grade], grade) for grade in _COLOURS if numbers[grade])
    click.echo(total if details else f"{total}; lint -v shows them whole, with what to do")


def _whole(finding: LintFinding) -> str:
    return f"{finding.kind}: {f'{finding.path}: ' if finding.path else ''}{finding.what}"


def _short(finding: LintFinding, width: int) -> str:
    """Return a finding in `width` characters: without the folders of its file, then cut."""
    line = _whole(finding)
    if len(line) > width and finding.path:
        line = f"{finding.kind}: {finding.path.rpartition('/')[2]}: {finding.what}"
    return line if len(line) <= width else f"{line[: width - 4]} ..."
