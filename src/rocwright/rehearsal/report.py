"""The report that a rehearsal step leaves: a stranger's tree wrote it, so it is read bounded and checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from rocbase.errors import CheckError
from rocbase.model import Frozen
from rocbase.units import printable
from rocwright.rehearsal.book import Trial
from rocwright.rehearsal.result import TrialFault, TrialTally
from rocwright.store.signing.safe_json import parse_json, read_bounded

# Bytes; ten thousand units with a line of each have some 5 MiB.
LARGEST = 8 * 1024**2
MOST_UNITS = 20_000

Text = Annotated[str, Field(max_length=600)]


class Unit(Frozen):
    """One run of a trial's command: for which file and values, and what was wrong with it."""

    trial: Annotated[int, Field(ge=0)]
    unit: Text
    ok: bool
    detail: Text


class TrialReport(Frozen):
    """What ran, how many units each trial has in all, and the versions of the root's tools."""

    schema_version: Literal[1] = Field(alias="schema")
    of: Annotated[tuple[Annotated[int, Field(ge=0, le=10**6)], ...], Field(max_length=200)]
    units: Annotated[tuple[Unit, ...], Field(max_length=MOST_UNITS)]
    tools: Annotated[dict[Annotated[str, Field(max_length=40)], Text], Field(max_length=40)]


def read_report(path: Path, trials: int) -> TrialReport:
    """The report of a step that was given so many trials. Raises CheckError for what is none."""
    try:
        data = parse_json(read_bounded(path, LARGEST, "report of a rehearsal"), "report of a rehearsal")
        report = TrialReport.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise _refused(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    ran = [0] * trials
    if len(report.of) != trials or any(unit.trial >= trials for unit in report.units):
        raise _refused(f"it tells of other trials than the {trials} that were asked for")
    for unit in report.units:
        ran[unit.trial] += 1
    if any(ran[number] > all_ for number, all_ in enumerate(report.of)):
        raise _refused("it tells of more units than there are")
    return report


def _refused(cause: str) -> CheckError:
    return CheckError(
        "the report of a rehearsal cannot be taken",
        cause=printable(cause)[:300],
        next_step="read the step's log: the tree that was rehearsed may have written over its report",
    )


def parts_of(report: TrialReport, trials: Sequence[Trial]) -> list[TrialTally]:
    """The report, trial by trial; a trial that found nothing to run is a fault of its own."""
    tallies = []
    for number, trial in enumerate(trials):
        ran = [unit for unit in report.units if unit.trial == number]
        skipped = report.of[number] - len(ran)
        faults = [
            TrialFault(name=printable(unit.unit), detail=printable(unit.detail))
            for unit in ran
            if not unit.ok
        ]
        if not report.of[number] and trial.absent:
            tallies.append(untried(trial, trial.absent))
            continue
        if not report.of[number]:
            detail = f"no file matches {', '.join(trial.files)}"
            tallies.append(
                _part(trial, tried=1, all_=1, failed=(TrialFault(name=trial.name, detail=detail),))
            )
            continue
        reasons = (f"{skipped} {trial.name}: a sample; --all tries each",) if skipped else ()
        tallies.append(
            _part(trial, tried=len(ran), all_=report.of[number], failed=tuple(faults), reasons=reasons)
        )
    return tallies


def untried(trial: Trial, reason: str) -> TrialTally:
    """A trial that could not be run; how many units it has is not known, so that it counts as one."""
    return _part(trial, tried=0, all_=1, reasons=(reason,))


def _part(
    trial: Trial,
    *,
    tried: int,
    all_: int,
    failed: tuple[TrialFault, ...] = (),
    reasons: tuple[str, ...] = (),
) -> TrialTally:
    return TrialTally(part=trial.part, name=trial.name, tried=tried, all=all_, failed=failed, reasons=reasons)
