"""The table: kept as JSON so that single rows can be measured anew, and written as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import middle

FOLDER = Path(__file__).parent
DATA = FOLDER / "results.json"
PAGE = FOLDER / "RESULTS.md"

WORSE = 1.2
"""How many times worse than before a figure must be to be named."""

QUIET = 0.15
"""The share of all cores that others may take before a row's note says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a row found. `values` are ratios, or in `unit`; their median is the figure.

    The goal is `most` or `least`, or neither where the row is there for comparison.
    """

    name: str
    what: str
    values: Sequence[float]
    unit: str = "x"
    most: float | None = None
    least: float | None = None
    note: str = ""

    @property
    def figure(self) -> float:
        return middle(self.values)

    @property
    def goal(self) -> str:
        if self.most is not None:
            return f"at most {_number(self.most, self.unit)}"
        return f"at least {_number(self.least, self.unit)}" if self.least is not None else "for comparison"

    @property
    def reached(self) -> bool | None:
        if self.most is not None:
            return self.figure <= self.most
        return self.figure >= self.least if self.least is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row as kept: what was found, when, where and beside how much other work.

    `commit` is the one that stood, `before` the figure that it had before and the commit of that; `worse` is
    how many times worse it has become, 0 where that cannot be said.
    """

    name: str
    what: str
    goal: str
    figure: str
    range: str
    runs: int
    reached: bool | None
    note: str
    date: str
    machine: str
    load_before: str
    load_after: str
    others: float
    values: list[float] = field(default_factory=list)
    commit: str = "not noted"
    before: str = ""
    worse: float = 0


def entry(
    found: Measured,
    machine: str,
    before: str,
    after: str,
    others: float,
    commit: str,
    last: Entry | None = None,
) -> Entry:
    """What is kept of a row; `last` is what was kept of it before."""
    return Entry(
        commit=commit,
        before=f"{last.figure} ({last.commit})" if last is not None else "",
        worse=round(times_worse(found, last), 3) if last is not None else 0,
        name=found.name,
        what=found.what,
        goal=found.goal,
        figure=_number(found.figure, found.unit),
        range=f"{_number(min(found.values), found.unit)} to {_number(max(found.values), found.unit)}",
        runs=len(found.values),
        reached=found.reached,
        note=found.note,
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        machine=machine,
        load_before=before,
        load_after=after,
        others=round(others, 3),
        values=[round(value, 5) for value in found.values],
    )


def times_worse(found: Measured, last: Entry) -> float:
    """How many times worse a figure is than the last: below 1 where it is better.

    0 where neither way is better, what is measured is another thing now, or either is nothing.
    """
    if found.what != last.what or not last.values or not found.figure:
        return 0
    was = middle(last.values)
    if found.most is not None:
        return found.figure / was if was else 0
    return was / found.figure if found.least is not None else 0


def worse_than_before(rows: Iterable[Entry]) -> list[str]:
    """Those that are more than `WORSE` times worse than before, a line each, with what may excuse it."""
    return [
        f"{row.name}: {row.figure}, before {row.before}: {row.worse:.2f} times worse"
        f"{f'; {row.others:.0%} of the cores were taken by others' if row.others > QUIET else ''}"
        for row in rows
        if row.worse > WORSE
    ]


def read() -> dict[str, Entry]:
    """The rows kept, by name; none where there is no file or it is of another make."""
    try:
        return {row["name"]: Entry(**row) for row in json.loads(DATA.read_text())}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def write(kept: Mapping[str, Entry], order: Sequence[str]) -> None:
    """Keep the rows, in `order` as far as it names them."""
    names = sorted(kept, key=lambda name: (_place(name, order), name))
    rows = [kept[name] for name in names]
    DATA.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    PAGE.write_text(page(rows))


def _place(name: str, order: Sequence[str]) -> int:
    return next((at for at, one in enumerate(order) if name == one or name.startswith(f"{one}:")), len(order))


def page(rows: Sequence[Entry]) -> str:
    """RESULTS.md."""
    lines = [
        "# Speed",
        "",
        "Written by `make bench` (`python -m benchmarks`); `python -m benchmarks help noop` measures single "
        "rows anew. A ratio compares rocwright with the other side, both run in turns (A B A B) in one go; "
        "the figure is the median over the pairs. These are measurements, not tests: no test fails on them; "
        f"`make bench` ends with 2 where a figure is more than {WORSE} times worse than before. Each row "
        "names the commit that stood when it was measured.",
        "",
        "| row | what | goal | figure | least to most | runs | reached |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    words = {True: "yes", False: "**no**", None: "-"}
    lines += [
        f"| `{row.name}` | {row.what} | {row.goal} | {row.figure} | {row.range} | {row.runs} "
        f"| {words[row.reached]} |"
        for row in rows
    ]
    lines += ["", "## Notes", ""]
    lines += [f"- `{row.name}`: {row.note}" for row in rows if row.note]
    worse = worse_than_before(rows)
    lines += ["", f"## More than {WORSE} times worse than before", ""]
    lines += [f"- {line}" for line in worse] or ["None of the rows that were measured since."]
    lines += ["", "## Where and when", ""]
    for machine in dict.fromkeys(row.machine for row in rows):
        lines += [f"{machine}:", ""]
        lines += ["| row | commit | measured | before | load before | load after | taken by others before |"]
        lines += ["| --- | --- | --- | --- | --- | --- | --- |"]
        lines += [_where_and_when(row) for row in rows if row.machine == machine]
        lines += [""]
    return "\n".join(lines)


def _where_and_when(row: Entry) -> str:
    busy = " (busy: take the figure with care)" if row.others > QUIET else ""
    loads = f"{row.load_before} | {row.load_after} | {row.others:.0%} of the cores{busy}"
    return f"| `{row.name}` | {row.commit} | {row.date} | {row.before or '-'} | {loads} |"


def _number(value: float | None, unit: str) -> str:
    assert value is not None
    match unit:
        case "x":
            return f"{value:.1f} x" if value >= 10 else f"{value:.3f}".rstrip("0").rstrip(".") + " x"
        case "s":
            return f"{value:.3f}".rstrip("0").rstrip(".") + " s" if value < 10 else f"{value:.0f} s"
        case _:
            return f"{value:.0f} {unit}"
