"""Steps that did not go well: the lines of the log that tell it, what is known of it, what to do."""

from __future__ import annotations

import mmap
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rocwright.catalog.issue import Issue, the_issues
from rocwright.diagnosis.diagnose import FailurePlace, diagnose
from rocwright.diagnosis.explain import for_step
from rocwright.diagnosis.masking import masked
from rocwright.diagnosis.novel import Novelty
from rocwright.diagnosis.read_log import open_log, pieces
from rocwright.records.model import Run, StepRun
from rocwright.web.log_lines import read_part

# Lines shown before the first error, and from it on.
BEFORE, AFTER = 3, 12

# Characters shown of one of them.
WIDEST = 300

# Bytes of a log that is searched while somebody waits for the page.
LARGEST = 256 * 1024**2

# Logs of which it is kept where their first error is.
MOST_KEPT = 64

# Characters of an error by which its line is found in the log.
NEEDLE = 120

BROKEN = ("failed", "killed")

KILLED = "it did not end: rocwright, or the machine, stopped in the middle of it"
AGAIN = "build again: what is finished is kept, and only the rest runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenStep:
    """A step that failed or was killed. `says` is its first error in a line, `message` how it ended, `lines`
    are what its log has around the error, which is the one of number `marked`; `at` is the byte of the log
    where that line begins. Both are None where it was not found. `new` is what its last good log had not."""

    step: StepRun
    says: str
    message: str
    cause: str
    lines: tuple[str, ...]
    next_step: str
    issue: Issue | None
    marked: int | None
    at: int | None
    new: Novelty | None = None


@dataclass(slots=True)
class BrokenSteps:
    """Reads logs for a page; `hidden` are the secrets that are never shown, `new` tells what is new in the
    log of a step of a run."""

    hidden: tuple[str, ...]
    new: Callable[[Run, str], Novelty | None] = lambda run, step: None
    _compared: OrderedDict[tuple[str, str], Novelty | None] = field(default_factory=OrderedDict)
    _cached: OrderedDict[tuple[Path, int, int], tuple[str, int] | None] = field(default_factory=OrderedDict)

    def of(self, run: Run, folder: Path) -> list[BrokenStep]:
        """The broken steps of a run whose logs lie in that folder; those that failed come first."""
        newest = {step.name: step for step in run.steps}
        bad = [step for step in newest.values() if step.outcome in BROKEN]
        bad.sort(key=lambda step: BROKEN.index(step.outcome))
        return [self._broken_step(run, step, folder / Path(step.log or "none").name) for step in bad]

    def _broken_step(self, run: Run, step: StepRun, log: Path) -> BrokenStep:
        error = {name: masked(text, self.hidden) for name, text in step.error.items()}
        killed = step.outcome == "killed"
        first = None if killed else self._first(log, FailurePlace(component=step.component, base=run.base))
        lines, marked = tuple(error.get("detail", "").splitlines()), None
        if first is not None:
            lines, marked = self._around(log, first[1])
        elif not lines:
            lines = self._last(log)
        message = error.get("message") or (KILLED if killed else "failed")
        cause = error.get("cause", "")
        says = masked(first[0], self.hidden) if first else cause if cause and cause in lines else message
        return BrokenStep(
            step=step,
            says=says,
            message="" if says == message else message,
            cause="" if cause == says or cause in lines else cause,
            lines=lines if lines != (says,) else (),
            next_step=for_step(error.get("next", ""), step.name) or (AGAIN if killed else ""),
            issue=the_issues()[0].get(step.issue),
            marked=marked,
            at=first[1] if first else None,
            new=self.new_in(run, step),
        )

    def new_in(self, run: Run, step: StepRun) -> Novelty | None:
        """What the log of a step that failed has and its last good one had not; kept, for neither log changes
        any more. None of a step that did not fail, and of a run that goes on."""
        if step.outcome != "failed" or run.state != "ended":
            return None
        key = (run.id, step.name)
        if key not in self._compared:
            novelty = self.new(run, step.name)
            lines = (
                [line.model_copy(update={"text": masked(line.text, self.hidden)}) for line in novelty.lines]
                if novelty
                else []
            )
            self._compared[key] = novelty.model_copy(update={"lines": tuple(lines)}) if novelty else None
            if len(self._compared) > MOST_KEPT:
                self._compared.popitem(last=False)
        return self._compared[key]

    def _first(self, log: Path, context: FailurePlace) -> tuple[str, int] | None:
        """The first error of a log, and the byte where its line begins; None where it has none that is
        found."""
        try:
            stat = log.stat()
        except OSError:
            return None
        key = (log, stat.st_size, stat.st_mtime_ns)
        if key not in self._cached:
            self._cached[key] = _look(log, context) if 0 < stat.st_size <= LARGEST else None
            if len(self._cached) > MOST_KEPT:
                self._cached.popitem(last=False)
        return self._cached[key]

    def _around(self, log: Path, offset: int) -> tuple[tuple[str, ...], int]:
        start = max(0, offset - BEFORE * 4 * WIDEST)
        leading = read_part(log, start, self.hidden, offset - start).lines if offset else ()
        following = read_part(log, offset, self.hidden).lines
        # what another command said before it is no part of it
        begins = [number for number, line in enumerate(leading) if line.kind == "phase"]
        leading = (leading[begins[-1] :] if begins else leading)[-BEFORE:]
        return tuple(_cut(line.text) for line in (*leading, *following[:AFTER])), len(leading)

    def _last(self, log: Path) -> tuple[str, ...]:
        return tuple(_cut(line.text) for line in read_part(log, -16 * 1024, self.hidden).lines[-AFTER:])


def _look(log: Path, context: FailurePlace) -> tuple[str, int] | None:
    with open_log(log) as file:
        error = diagnose(pieces(file), context).first
    needle = error.text[:NEEDLE].encode() if error else b""
    if error is None or not needle:
        return None
    with log.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        place = data.find(needle)
        return (error.text, data.rfind(b"\n", 0, place) + 1) if place >= 0 else None


def _cut(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 3]}..."
