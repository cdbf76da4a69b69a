"""A report on a machine, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rocbase.units import duration, size
from rocwright.doctor.able import Able
from rocwright.doctor.doctor import DoctorReport
from rocwright.doctor.findings.model import DoctorFinding

Style = Callable[[str, str], str]
"""Marks a text by what it is: the grade of a finding, or "head"."""

MANY = 4
"""Stacks that are named; of more it is said how many."""


def plain(text: str, what: str) -> str:
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
        head = "What it can build (times and disk space from the catalog, for two cores, partly estimated):"
        yield style(head, "head")
        yield from _table(report.able)


def _finding(one: DoctorFinding, style: Style) -> Iterator[str]:
    yield f"{style(f'{one.grade:<7}', one.grade)}  {one.what}"
    if one.grade == "ok":
        return
    many = f"{len(one.stacks)} stacks"
    for label, text in (
        ("why", one.why),
        ("for", ", ".join(one.stacks) if len(one.stacks) <= MANY else many),
        ("fix", f"{one.remedy}{'   (safe: --fix)' if one.safe else ''}" if one.remedy else ""),
    ):
        if text:
            yield f"{'':9}{label:<5} {text}"


def _table(every: Sequence[Able]) -> Iterator[str]:
    for one in every:
        took = f"took {duration(one.took)} here" if one.took else ""
        expected = f"about {duration(one.need.seconds)}" if one.need.seconds else "time unknown"
        if one.how == "not served":
            words = [f"not supported: {one.why}"]
        else:
            words = [
                f"{one.how}{f' ({one.why})' if one.why else ''}",
                took or expected,
                size(one.need.disk) if one.need.disk else _others(one),
                "1 job" if one.jobs == 1 else f"{one.jobs} jobs",
                one.said or ("has a lock, not tested yet" if one.row else "never tried"),
                *(f"{name}: {told}" for name, told in one.lacks.items()),
            ]
        yield f"  {one.target:<8} {one.stack:<18} {' · '.join(words)}"


def _others(one: Able) -> str:
    """What building for the target took others, where no recipe says it."""
    if one.others is None:
        return "disk unknown"
    said = [f"{size(one.others.memory)} of memory"] if one.others.memory else []
    said += [f"{size(one.others.disk)} of disk"] if one.others.disk else []
    said += [f"{one.others.hours} h"] if one.others.hours else []
    return f"other machines took {', '.join(said)}" if said else "disk unknown"
