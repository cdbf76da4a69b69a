"""How cells of the matrix stand, in one of four words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, get_args

from rocwright.records.model import Cell

Standing = Literal["failing", "stopped", "never built", "passing"]
STANDINGS: tuple[Standing, ...] = get_args(Standing)


def standing(cell: Cell) -> Standing:
    """Return how the newest run ended: passing only if it built, or its checks found nothing wrong."""
    match cell.outcome:
        case "failed" | "killed":
            return "failing"
        case "built" | "verified":
            return "passing"
        case "stopped":
            return "stopped"
        case _:
            return "never built"


def standings(cells: Iterable[Cell]) -> str:
    """Return how many cells stand how, in words; that all pass only if each one does."""
    counts = Counter(map(standing, cells))
    if counts and counts.keys() <= {"passing"}:
        return f"{counts['passing']} of {counts['passing']} passing"
    return ", ".join(f"{counts[word]} {word}" for word in STANDINGS if counts[word])
