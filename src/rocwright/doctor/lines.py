"""A report on a machine, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rocbase.units import duration, size
from rocwright.doctor.able import Able
from rocwright.doctor.doctor import DoctorReport
from rocwright.doctor.findings.model import DoctorFinding
from rocwright.execution.requirements import disk_text, time_text

# Marks a text by what it is: the grade of a finding, or "head".
Style = Callable[[str, str], str]

# Stacks that are named; of more it is said how many.
MANY = 4


def plain(text: str, label: str) -> str:
    """Marks nothing."""
    return text


def lines(report: DoctorReport, style: Style = plain) -> Iterator[str]:
    """Each finding with why it matters and what helps, then what the machine can build and run."""
    for finding in report.findings:
        yield from _finding(finding, style)
    tools = ", ".join(f"{name} {version}" for name, version in report.machine.tools.items())
    if tools:
        yield f"{'':9}tools on the host: {tools}"
    if report.able:
        yield ""
        head = "What it can build (time and disk of a whole build, as rocwright plan estimates them):"
        yield style(head, "head")
        yield from _table(report.able)


def _finding(finding: DoctorFinding, style: Style) -> Iterator[str]:
    yield f"{style(f'{finding.grade:<7}', finding.grade)}  {finding.what}"
    if finding.grade == "ok":
        return
    many = f"{len(finding.stacks)} stacks"
    for label, text in (
        ("why", finding.why),
        ("for", ", ".join(finding.stacks) if len(finding.stacks) <= MANY else many),
        ("fix", f"{finding.remedy}{'   (safe: --fix)' if finding.safe else ''}" if finding.remedy else ""),
    ):
        if text:
            yield f"{'':9}{label:<5} {text}"


def _table(every: Sequence[Able]) -> Iterator[str]:
    for ability in every:
        took = f"took {duration(ability.took)} here" if ability.took else ""
        forecast = ability.need.outlook
        if ability.how == "not served":
            words = [f"not supported: {ability.why}"]
        else:
            words = [
                f"{ability.how}{f' ({ability.why})' if ability.why else ''}",
                took or (time_text(forecast) if forecast else "time not known"),
                *filter(
                    None, (disk_text(forecast, brief=True) if forecast else "", _needed_elsewhere(ability))
                ),
                "1 job" if ability.jobs == 1 else f"{ability.jobs} jobs",
                ability.said or ("has a lock, not tested yet" if ability.row else "never tried"),
                *(f"{name}: {lack}" for name, lack in ability.lacks.items()),
            ]
        yield f"  {ability.target:<8} {ability.stack:<18} {' · '.join(words)}"


def _needed_elsewhere(ability: Able) -> str:
    """What building for the target took others, if its plan does not say it."""
    if ability.others is None:
        return ""
    figures = [f"{size(ability.others.memory)} of memory"] if ability.others.memory else []
    figures += [f"{size(ability.others.disk)} of disk"] if ability.others.disk else []
    figures += [f"{ability.others.hours} h"] if ability.others.hours else []
    return f"other machines took {', '.join(figures)}" if figures else ""
