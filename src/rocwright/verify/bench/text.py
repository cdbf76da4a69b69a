"""Figures in words: a table of one stack, and of two side by side."""

from __future__ import annotations

from collections.abc import Iterable

from rocwright.records.model import Figure, is_gpu
from rocwright.verify.bench.on_record import SideBySide
from rocwright.verify.bench.statistics import LEAST_RUNS, middle, spread

COLUMNS = ("figure", "median", "spread", "unit", "better", "runs", "on")
COMPARED = ("figure", "unit", "one", "other", "change", "says", "on")


def number(value: float) -> str:
    """With the digits that a figure has, not those of a float."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def where(device: str) -> str:
    """A device by its name; one that is a program is called so."""
    return device if is_gpu(device) or not device or device == "cpu" else f"{device}, in software"


def rows(figures: Iterable[Figure]) -> list[tuple[str, ...]]:
    """A row for each figure."""
    return [
        (
            figure.name,
            number(middle(figure.values)),
            number(spread(figure.values)) if len(figure.values) > 1 else "-",
            figure.unit,
            figure.better,
            str(len(figure.values)),
            where(figure.device),
        )
        for figure in figures
    ]


def compared(pairs: Iterable[SideBySide]) -> list[tuple[str, ...]]:
    """A row for each figure that both have; what is within the spread of the runs is called so."""
    table: list[tuple[str, ...]] = []
    for first, second, change in pairs:
        enough = min(len(first.values), len(second.values)) >= LEAST_RUNS
        word = "worse" if change.worse > 0 else "better"
        says = f"too few runs to tell: {LEAST_RUNS} at least" if not enough else word
        if enough and not change.certain:
            says = "within the spread"
        devices = dict.fromkeys((where(first.device), where(second.device)))
        table.append(
            (
                first.name,
                first.unit,
                number(middle(first.values)),
                number(middle(second.values)),
                f"{middle(second.values) / middle(first.values) - 1:+.1%}",
                says,
                " / ".join(devices),
            )
        )
    return table
