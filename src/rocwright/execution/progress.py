"""What one sees while steps run: a live line each on a terminal, quiet plain lines elsewhere."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Protocol

from rocbase.terminal import is_dumb, unguarded
from rocbase.units import count, duration, plain_text, printable, size
from rocwright.execution.pace import Calm, Marks, left_text, seconds_left
from rocwright.execution.row import BETWEEN, LEAST_LAST, Columns, RowPart, cut, fit, joined
from rocwright.execution.tally import TALLY

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

_COUNTERS = (
    re.compile(r"^\s*\[\s*(?P<done>\d+)/(?P<all>\d+)\]"),
    re.compile(r"^\s*\[\s*(?P<percent>\d{1,3})%\]"),
)
# Seconds between two plain lines about the same step.
PLAIN_EVERY = 20.0

# Seconds after which a step that prints nothing is told of all the same: one compiler can take minutes.
SILENCE = 60.0


IN_ALL = "  in all"

# How the line begins by which a step says that some of its things were done before.
GOES_ON = "goes on in its kept tree"

# So few things tell nothing of a pace, unless they took so many seconds.
FEW, LONG = 2, 30.0


def parse_counter(line: str) -> tuple[int, int] | None:
    """Done and total from ninja's `[12/345]` or make's `[ 12%]`; None where the line has neither."""
    for pattern in _COUNTERS:
        match = pattern.match(line)
        if match is None:
            continue
        if "all" in pattern.groupindex:
            finished, total = int(match["done"]), int(match["all"])
        else:
            finished, total = int(match["percent"]), 100
        return (finished, total) if 0 <= finished <= total and total else None
    return None


@dataclass(slots=True)
class RunningStep:
    """A step under way. `expected` is how long it should take, in seconds, and `past` how many things were
    counted in all when it was built before; 0 where that is not known. `load` tells what it has of the
    machine.
    """

    name: str
    jobs: int
    expected: float = 0
    past: int = 0
    load: Callable[[], str] = str
    begun: float = field(default_factory=time.monotonic)
    counter: tuple[int, int] | None = None
    before: int = 0
    """What the counters that have begun anew since had come to."""
    counting_since: float = 0
    first: int = 0
    """How many things had been done when that began."""
    marks: Marks = field(default_factory=Marks)
    """When how many were done since."""
    resumed: bool = False
    progressed: float = 0
    """When the counter last changed."""
    last: str = ""
    tally: str = ""
    """How many things and bytes are done of how many, where its lines tell."""
    told: float = field(default_factory=time.monotonic)
    calm: Calm = field(default_factory=Calm)

    def note(self, line: str) -> None:
        """Take a line of its output in."""
        counter = parse_counter(line)
        if counter is not None:
            if self.counter is None or counter[0] < self.counter[0]:
                self.before += self.counter[0] if self.counter else 0
                # with a total to go by, the pace is that of all that was counted
                if self.counter is None or not self.past:
                    self.counting_since = time.monotonic()
                    self.first = int(counter[0] == 1)
                    self.marks = Marks()
            if counter != self.counter:
                self.progressed = time.monotonic()
                self.marks.note(self.progressed, self.before + counter[0])
            self.counter = counter
        if match := TALLY.match(line):
            self.tally = match["tally"]
        elif line.strip():
            self.last = line.strip()
        self.resumed = self.resumed or (self.counter is None and line.startswith(GOES_ON))

    @property
    def counted(self) -> int:
        """How many things were counted in all."""
        return self.before + (self.counter[0] if self.counter else 0)

    @property
    def done(self) -> tuple[int, int] | None:
        """How many things are done, of how many: of all of them where that is known from before, and all
        of them are to be done."""
        if self.counter is None or not self.past:
            return self.counter
        return self.counted, max(0 if self.resumed else self.past, self.before + self.counter[1])

    @property
    def share(self) -> float | None:
        """How much is done, 0 to 1, from its counter, else from what it took before."""
        if self.done is not None:
            return self.done[0] / self.done[1]
        if self.expected:
            return min((time.monotonic() - self.begun) / self.expected, 0.99)
        return None

    @property
    def left(self) -> float | None:
        """Seconds left, or None where nothing tells: by the pace of the counter, and the more so the more of
        it is done; for the rest by what was expected."""
        clock = time.monotonic()
        counting = self.progressed - self.counting_since
        if self.done is None or (self.done[0] <= FEW and (self.done[0] <= self.first or counting < LONG)):
            remaining = self.expected - (clock - self.begun)
            return remaining if remaining > 0 else None
        # of what goes on, only the part that is left is to be expected
        part = min(1.0, self.done[1] / self.past) if self.resumed and self.past else 1.0
        remaining = self.expected * part - (self.progressed - self.begun)
        unit_time = self.marks.each(self.counting_since)
        return seconds_left(
            *self.done, counting, remaining, clock - self.progressed, first=self.first, unit_time=unit_time
        )

    def parts(self) -> list[RowPart]:
        """Counter, share, time, time left, and how well that is known, the time left kept longest."""
        parts = []
        if self.counter is not None and self.counter[1] != 100:
            parts.append(RowPart(f"{self.counter[0]:,}/{self.counter[1]:,}", 4))
        if self.done is not None:
            parts.append(RowPart(f"{100 * self.done[0] / self.done[1]:.0f} %", 2))
        parts.append(RowPart(self.tally, 3))
        remaining = self.left
        parts.append(RowPart(duration(time.monotonic() - self.begun), 3 if remaining is not None else 1))
        if remaining is not None:
            shown = self.calm.follow(remaining, time.monotonic())
            parts.append(RowPart(left_text(shown, self.share or 0), 1))
        if not self.expected:
            parts.append(
                RowPart("no history: counting steps" if self.counter is not None else "no history", 6)
            )
        elif remaining is None:
            parts.append(RowPart(f"longer than the {duration(self.expected)} expected", 6))
        return [*parts, RowPart(self.load(), 5)]

    def describe(self) -> str:
        """One line: counter, share, time left, and how well that is known."""
        return joined(self.parts())


def load(jobs: int, memory: int) -> str:
    """What a step has of the machine, in words: jobs, and bytes where they are worth telling."""
    label = count(jobs, "job")
    return f"{label} · {size(memory)}" if memory >= 2**20 else label


class Progress(Protocol):
    """What the scheduler tells."""

    def __enter__(self) -> Progress: ...
    def __exit__(self, *_: object) -> None: ...
    def say(self, text: str) -> None: ...
    def of(self, describe: Callable[[], str]) -> None: ...
    def started(self, running: RunningStep) -> None: ...
    def line(self, running: RunningStep, text: str) -> None: ...
    def ended(self, running: RunningStep, text: str) -> None: ...


class PlainProgress:
    """Lines on standard error: a step begins, now and then how far it is and the whole, how it ended."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._whole: Callable[[], str] = str
        self._running: dict[str, RunningStep] = {}
        self._none_left = Event()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._none_left.set()

    def say(self, text: str) -> None:
        with self._lock:
            print(text, file=sys.stderr, flush=True)

    def of(self, describe: Callable[[], str]) -> None:
        self._whole = describe

    def started(self, running: RunningStep) -> None:
        self.say(f"  {running.name}: started" + (f", {running.jobs} jobs" if running.jobs > 1 else ""))
        with self._lock:
            if not self._running:
                self._none_left = Event()
                Thread(target=self._break_silence, args=(self._none_left,), daemon=True).start()
            self._running[running.name] = running

    def line(self, running: RunningStep, text: str) -> None:
        running.note(text)
        self._tell(running, PLAIN_EVERY)

    def ended(self, running: RunningStep, text: str) -> None:
        with self._lock:
            if self._running.pop(running.name, None) and not self._running:
                self._none_left.set()
        self.say(f"  {running.name}: {text}")

    def _tell(self, running: RunningStep, every: float) -> None:
        if time.monotonic() - running.told >= every:
            running.told = time.monotonic()
            overall = self._whole()
            self.say(f"  {running.name}: {running.describe()}" + (f"; in all {overall}" if overall else ""))

    def _break_silence(self, none_left: Event) -> None:
        while not none_left.wait(SILENCE / 4):
            with self._lock:
                running = [*self._running.values()]
            for step in running:
                self._tell(step, SILENCE)


class LiveProgress:
    """A line for each running step and one for the whole, redrawn in place; what has ended stays above."""

    def __init__(self) -> None:
        self._running: dict[str, RunningStep] = {}
        self._whole: Callable[[], str] = str
        self._lock = Lock()
        self._live: Live | None = None

    def __enter__(self) -> Progress:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=unguarded(sys.stderr))
        self._live = Live(
            get_renderable=lambda: self.frame(console.width),
            console=console,
            refresh_per_second=4,
            transient=True,
            # it would print strangers' codes
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def frame(self, width: int) -> Table:
        """A line for each running step and one for the whole, in so many columns: of a name nothing is left
        out before all else is."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 1, 0, 0))
        with self._lock:
            running = [(step, f"  {printable(step.name)}", step.parts()) for step in self._running.values()]
        overall = self._whole()
        names = [name for _, name, _ in running] + ([IN_ALL] if overall else [])
        needed = [len(joined([part for part in parts if part.rank <= 2])) for _, _, parts in running]
        columns = Columns.of(width, names, max(needed, default=0))
        for one_width in filter(None, (columns.name, columns.bar, columns.rest)):
            table.add_column(no_wrap=True, width=one_width)
        for step, name, parts in running:
            words = Text(fit(parts, columns.rest))
            room = columns.rest - len(words) - 2
            if room >= LEAST_LAST and step.last:
                words.append(f"  {printable(cut(step.last, room))}", style="dim")
            share = step.share
            bar = ProgressBar(total=1, completed=share or 0, width=columns.bar, pulse=share is None)
            cells = ((columns.name, Text(cut(name, columns.name))), (columns.bar, bar), (columns.rest, words))
            table.add_row(*(cell for room, cell in cells if room))
        if overall:
            overall_parts = [RowPart(text, rank) for rank, text in enumerate(overall.split(BETWEEN))]
            table.add_row(
                *([Text(cut(IN_ALL, columns.name))] if columns.name else []),
                *([Text("")] if columns.bar else []),
                *([Text(fit(overall_parts, columns.rest))] if columns.rest else []),
            )
        return table

    def say(self, text: str) -> None:
        if self._live is not None:
            self._live.console.print(plain_text(text), markup=False, highlight=False)

    def of(self, describe: Callable[[], str]) -> None:
        self._whole = describe

    def started(self, running: RunningStep) -> None:
        with self._lock:
            self._running[running.name] = running

    def line(self, running: RunningStep, text: str) -> None:
        with self._lock:
            running.note(text)

    def ended(self, running: RunningStep, text: str) -> None:
        with self._lock:
            self._running.pop(running.name, None)
        self.say(f"  {running.name}: {text}")


def choose_progress() -> Progress:
    """Live on a terminal that can move its cursor, plain elsewhere."""
    return LiveProgress() if sys.stderr.isatty() and not is_dumb() else PlainProgress()
