"""Rows of measurements: the table, the files of a run, and the comparison with an earlier run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from benchmarks.measure import middle

FOLDER = Path(__file__).parent
OUT = FOLDER.parent / ".out" / "bench"

# How many times worse than in the earlier run a figure must be to be marked.
WORSE = 1.2

# The share of all cores that other processes may take before a run says so.
QUIET = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A row: `values` are ratios, or in `unit`, and their median is the figure.

    The goal is `most` or `least`.
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
            return f"at most {number(self.most, self.unit)}"
        assert self.least is not None, f"{self.name} has no goal"
        return f"at least {number(self.least, self.unit)}"

    @property
    def reached(self) -> bool:
        if self.most is not None:
            return self.figure <= self.most
        assert self.least is not None, f"{self.name} has no goal"
        return self.figure >= self.least

    def times_worse(self, earlier: Self) -> float:
        """Return how many times worse the figure is than an earlier one; 0 if they are not comparable."""
        if earlier.what != self.what or not earlier.figure or not self.figure:
            return 0
        ratio = self.figure / earlier.figure
        return ratio if self.most is not None else 1 / ratio


def write(rows: Iterable[Measured], about: Mapping[str, str], earlier: Mapping[str, Measured]) -> Path:
    """Write results.json and results.md, and return the path of the second."""
    rows = list(rows)
    OUT.mkdir(parents=True, exist_ok=True)
    data = {**about, "rows": [asdict(row) for row in rows]}
    (OUT / "results.json").write_text(json.dumps(data, indent=1) + "\n")
    page = OUT / "results.md"
    page.write_text(markdown(rows, about, earlier))
    return page


def read(path: Path) -> dict[str, Measured]:
    """Return the rows of a results.json by name."""
    return {row["name"]: Measured(**row) for row in json.loads(path.read_text())["rows"]}


def markdown(rows: Sequence[Measured], about: Mapping[str, str], earlier: Mapping[str, Measured]) -> str:
    """Render the table with the notes of its rows."""
    head, *body = cells(rows, earlier)
    lines = [", ".join(f"{name}: {text}" for name, text in about.items()), ""]
    lines += [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body)]
    lines += ["", *(f"- `{row.name}`: {row.what}. {row.note}" for row in rows)]
    return "\n".join(lines) + "\n"


def table(rows: Sequence[Measured], earlier: Mapping[str, Measured]) -> str:
    """Render the table for a terminal."""
    lines = cells(rows, earlier)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def cells(rows: Sequence[Measured], earlier: Mapping[str, Measured]) -> list[list[str]]:
    """Return the table's lines, the head first; `against` is the earlier figure and how it changed."""
    lines = [["row", "goal", "figure", "least to most", "runs", "reached", "against"]]
    for row in rows:
        values = f"{number(min(row.values), row.unit)} to {number(max(row.values), row.unit)}"
        reached = "yes" if row.reached else "NO"
        against = _against(row, earlier.get(row.name))
        figure = number(row.figure, row.unit)
        lines.append([row.name, row.goal, figure, values, str(len(row.values)), reached, against])
    return lines


def is_worse(row: Measured, earlier: Mapping[str, Measured]) -> bool:
    """Return whether a row is more than `WORSE` times worse than its earlier figure."""
    return row.name in earlier and row.times_worse(earlier[row.name]) > WORSE


def _against(row: Measured, earlier: Measured | None) -> str:
    if earlier is None:
        return "-"
    times = row.times_worse(earlier)
    mark = f", {times:.2f} times WORSE" if times > WORSE else ""
    return f"{number(earlier.figure, earlier.unit)}{mark}" if times else "not comparable"


def number(value: float, unit: str) -> str:
    """Render a figure with its unit."""
    match unit:
        case "x":
            return f"{value:.1f} x" if value >= 10 else f"{value:.3f}".rstrip("0").rstrip(".") + " x"
        case "s":
            return f"{value:.3f}".rstrip("0").rstrip(".") + " s" if value < 10 else f"{value:.0f} s"
        case _:
            return f"{value:.0f} {unit}"
