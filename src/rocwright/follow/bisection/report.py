"""The report of a search: for the terminal, and as a page for an upstream bug with the files to repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rocbase.files.atomic import write_atomic
from rocwright.follow.bisection.model import BisectionReport, Narrowed, Try
from rocwright.follow.bisection.pins import Pin, mix
from rocwright.plan.resolve.files import write_lock, write_request
from rocwright.plan.resolve.folder import LOCK, PROJECT
from rocwright.plan.resolve.model import Lock

GOOD_LOCK, BAD_LOCK, PAGE = "good.lock", "bad.lock", "report.md"


def tell(report: BisectionReport) -> Iterator[str]:
    """The answer in lines."""
    built, changes = sum(trial.built for trial in report.tries), len(report.changes)
    yield f"{report.failure.step} fails: {report.failure.what}"
    if report.failure.first:
        yield f"  {report.failure.first}"
    differ = f"{changes} change{'s' * (changes != 1)} between the two"
    yield f"tried     {len(report.tries)} locks, {built} built; {differ}"
    if report.irrelevant:
        yield f"left out  {_labels(report.irrelevant)}: they do not enter the key of the step"
    together = " together" if len(report.culprits) > 1 else ""
    yield f"culprit{'s' if len(report.culprits) > 1 else ''}{together}"
    for block in report.culprits:
        yield f"  {_block(block)}"
    for block in report.parts:
        yield f"  among: {_block(block)}"
    for commit in report.commits:
        yield from (f"  {line}" for line in _narrowed(commit))


def _labels(changes: Sequence[Pin]) -> str:
    return ", ".join(change.label for change in changes)


def _block(block: Sequence[Pin]) -> str:
    if len(block) == 1:
        return block[0].label
    return f"one of these, which cannot be tried separately: {_labels(block)}"


def _narrowed(narrowed: Narrowed) -> Iterator[str]:
    if narrowed.why_not:
        yield f"{narrowed.component}: not searched for a commit: {narrowed.why_not}"
        return
    if len(narrowed.suspects) == 1:
        yield f"{narrowed.component}: the first bad commit"
    else:
        yield f"{narrowed.component}: one of these commits; those before the last cannot be built"
    for suspect in narrowed.suspects:
        yield f"  {suspect.commit[:12]} {suspect.date[:10]} {suspect.title}"


def write_report(report: BisectionReport, good: Lock, bad: Lock, folder: Path) -> Path:
    """The page, and the two nearest locks: the good one, and it with the culprits. Gives the page's path."""
    culprits = [pin for block in report.culprits for pin in block]
    folder.mkdir(parents=True, exist_ok=True)
    write_request(folder / PROJECT, good.request)
    write_lock(folder / GOOD_LOCK, good)
    write_lock(folder / BAD_LOCK, mix(good, bad, culprits))
    write_atomic(folder / PAGE, page(report, good))
    return folder / PAGE


def page(report: BisectionReport, good: Lock) -> str:
    """The report as Markdown."""
    request = good.request
    lines = [
        f"# {report.failure.step} fails since {_labels([pin for block in report.culprits for pin in block])}",
        "",
        f"Stack {request.stack}, {', '.join(request.gpu)}, on {request.base}. With the good lock it builds.",
        "",
        "## First error",
        "",
        *_fenced(report.failure.detail or report.failure.first or report.failure.what),
        "",
        "## What made the difference",
        "",
        *_fenced("\n".join(tell(report))),
        "",
        "## To repeat it",
        "",
        f"In this folder, which has {PROJECT} and both locks:",
        "",
        *_fenced(
            f"cp {GOOD_LOCK} {LOCK} && rocwright build    # builds\n"
            f"cp {BAD_LOCK} {LOCK} && rocwright build     # fails at {report.failure.step}"
        ),
        "",
        "## What was tried",
        "",
        "| lock | answer | seconds | |",
        "| --- | --- | --- | --- |",
        *map(_row, report.tries),
        "",
    ]
    return "\n".join(lines)


def _row(trial: Try) -> str:
    cells = ("; ".join(trial.changes), trial.answer.value, f"{trial.seconds:.0f}", trial.says)
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _fenced(text: str) -> list[str]:
    """Text that is shown as it is, whatever it holds."""
    return [f"    {line}" for line in text.splitlines()]
