"""A run's steps as a picture: from left to right, each right of what it waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rocwright.records.model import StepRun

WIDTH, HEIGHT, GAP_X, GAP_Y = 180, 40, 28, 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A step in the picture; `look` is the word for its state."""

    name: str
    look: str
    x: int
    y: int
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Boxes and the arrows between them, as paths."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    arrows: tuple[str, ...]


def look_of(step: StepRun) -> str:
    """The state of a step in one word: queued, running, or how it ended."""
    return step.outcome if step.state == "ended" else step.state


def graph(steps: Sequence[StepRun]) -> Graph:
    """Where each step stands. A step that was tried again is drawn once, as it is now."""
    latest = {step.name: step for step in steps}
    column = _columns(latest)
    rows: dict[int, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for name in latest:
        row = rows.get(column[name], 0)
        rows[column[name]] = row + 1
        places[name] = (column[name] * (WIDTH + GAP_X), row * (HEIGHT + GAP_Y))
    boxes = tuple(
        Box(name=name, look=look_of(step), x=places[name][0], y=places[name][1], says=_says(step))
        for name, step in latest.items()
    )
    arrows = tuple(
        _arrow(places[need], places[name])
        for name, step in latest.items()
        for need in dict.fromkeys(step.needs)
        if need in places
    )
    width = (max(column.values(), default=0) + 1) * (WIDTH + GAP_X) - GAP_X
    height = max(rows.values(), default=1) * (HEIGHT + GAP_Y) - GAP_Y
    return Graph(width=width, height=height, boxes=boxes, arrows=arrows)


def _columns(steps: Mapping[str, StepRun]) -> dict[str, int]:
    """For each step one more than the rightmost of what it waits for; an arrow that closes a circle does not
    count."""
    column: dict[str, int] = {}
    visited: set[str] = set()
    for first in steps:
        path = [first]
        while path:
            name = path[-1]
            visited.add(name)
            needs = [need for need in steps[name].needs if need in steps]
            ahead = next((need for need in needs if need not in visited), "")
            if ahead:
                path.append(ahead)
            else:
                column.setdefault(name, max((column.get(need, -1) for need in needs), default=-1) + 1)
                path.pop()
    return column


def _says(step: StepRun) -> str:
    return f"{step.seconds:.0f} s" if step.seconds else look_of(step)


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1 = start[0] + WIDTH, start[1] + HEIGHT // 2
    x2, y2 = end[0], end[1] + HEIGHT // 2
    middle = x2 - GAP_X // 2
    return f"M{x1},{y1} C{middle},{y1} {middle},{y2} {x2 - 3},{y2}"
