"""Tells the records of a run while it goes on; whatever happens to them, the run goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rocbase.errors import ExplainedError
from rocwright.home import Home
from rocwright.records.model import Run, RunOutcome, Sample, StepRun
from rocwright.records.opening import open_records

if TYPE_CHECKING:
    from rocwright.records.plain import Plain
    from rocwright.records.read import Records

# Seconds that the end of a run waits for the records.
PATIENCE = 20.0


@dataclass(slots=True)
class _News:
    """What is not on record yet."""

    run: Run | None = None
    steps: dict[int, StepRun] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    lock: str = ""
    told: RunOutcome | None = None


class RunRecorder:
    """A thread that writes what it is told, all that has gathered at once; nobody waits for it before the
    end. What could not be written is told once, and stays as a file that is taken over later."""

    def __init__(self, home: Home, say: Callable[[str], None]) -> None:
        self._home, self._say = home, say
        self._news = _News()
        self._change = threading.Condition()
        self._over = False
        self._told_of_failure = False
        self._kept = False
        self._records: Plain | Records | None = None
        self._thread = threading.Thread(target=self._write, name="records", daemon=True)

    def put(
        self, run: Run, steps: dict[int, StepRun], samples: Sequence[Sample] = (), lock: str = ""
    ) -> None:
        """Note how a run stands now, and what of it changed; `lock` is the text of its lock, where new."""
        with self._change:
            self._news.run = run
            self._news.steps |= steps
            self._news.samples += samples
            self._news.lock = lock or self._news.lock
            self._change.notify()
            if self._thread.ident is None:
                self._thread.start()

    def close(self, outcome: RunOutcome) -> None:
        """Note the end of the run, and wait until it is on record, or kept as a file."""
        with self._change:
            self._news.told = outcome
            self._over = True
            self._change.notify()
        if self._thread.ident is None:
            self._thread.start()
        self._thread.join(PATIENCE)
        if not self._kept:
            self._fail(
                ExplainedError(
                    f"the records did not answer for {PATIENCE:.0f} s",
                    cause="another program has them locked, or their disk or server hangs",
                    next_step="rocwright records check; the next run records what is missing",
                )
            )
            self._spool(outcome)

    def _write(self) -> None:
        over = False
        while not over:
            with self._change:
                while self._news == _News() and not self._over:
                    self._change.wait()
                news, self._news = self._news, _News()
                over = self._over
            try:
                self._put(news)
                self._kept = news.told is not None
            except Exception as error:  # whatever it is: a build does not fail for its record
                self._fail(error)
                if news.told is not None:
                    self._spool(news.told)
        if self._records is not None:
            self._records.close()

    def _put(self, news: _News) -> None:
        if self._records is None:
            from rocwright.records.plain import open_plain

            self._records = open_plain(self._home, make=True) or open_records(self._home)
        if news.told is not None:
            outcome = news.told
            self._records.put(
                outcome.run, None, outcome.findings, outcome.artifacts, news.samples, outcome.lock
            )
        elif news.run is not None:
            self._records.put(news.run, news.steps, samples=news.samples, lock=news.lock)

    def _fail(self, error: Exception) -> None:
        if self._told_of_failure:
            return
        self._told_of_failure = True
        words = [str(error)]
        if isinstance(error, ExplainedError):
            words += [error.cause, error.next_step]
        self._say(f"not on record: {'; '.join(word for word in words if word)}. Continuing.")

    def _spool(self, outcome: RunOutcome) -> None:
        from rocwright.records.spool import spool

        with suppress(OSError):
            spool(self._home, outcome)
        self._kept = True
