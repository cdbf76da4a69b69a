"""Lines over time, drawn on the server."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite

from rocwright.web.render import day

WIDTH, HEIGHT = 640, 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A line: its name, the points of an SVG polyline, and its last value in words."""

    name: str
    points: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Curves over one axis; `top` is the most of them in words, `begin` and `end` those of the axis below."""

    title: str
    curves: tuple[Curve, ...]
    top: str
    begin: str
    end: str


Point = tuple[float, float]


def chart(
    title: str, curves: Mapping[str, Sequence[Point]], words: tuple[str, str], unit: Callable[[float], str]
) -> Chart | None:
    """The curves, scaled together; None where there are not two points of any. What is no number, or less
    than nothing, is not drawn."""
    curves = {
        name: [(x, y) for x, y in points if isfinite(x) and isfinite(y) and y >= 0]
        for name, points in curves.items()
    }
    curves = {name: points for name, points in curves.items() if len(points) > 1}
    if not curves:
        return None
    every = [point for points in curves.values() for point in points]
    left, right = min(x for x, _ in every), max(x for x, _ in every)
    top = max(y for _, y in every)
    scale = top or 1
    wide = (right - left) or 1
    return Chart(
        title=title,
        curves=tuple(
            Curve(
                name=name,
                points=" ".join(
                    f"{(x - left) / wide * WIDTH:.1f},{HEIGHT - y / scale * (HEIGHT - 8):.1f}"
                    for x, y in points
                ),
                last=unit(points[-1][1]),
            )
            for name, points in curves.items()
        ),
        top=unit(top),
        begin=words[0],
        end=words[1],
    )


def curves_of(rows: Iterable[tuple[str, str, float]]) -> dict[str, list[Point]]:
    """Curves by name, of rows of a name, a time and a value."""
    curves: dict[str, list[Point]] = defaultdict(list)
    for name, timestamp, value in rows:
        # a time that a hand wrote into the records is no reason to show nothing
        with contextlib.suppress(ValueError, OverflowError):
            curves[name].append((datetime.fromisoformat(timestamp).timestamp(), value))
    # the six that have the most to tell: more cannot be told apart
    names = sorted(curves, key=lambda name: -len(curves[name]))[:6]
    return {name: sorted(curves[name]) for name in sorted(names)}


def between(times: Sequence[str]) -> tuple[str, str]:
    """The first and the last day of these times, with the time of day where that is one day."""
    first, last = day(min(times, default="")), day(max(times, default=""))
    return (first, last) if first[:10] == last[:10] else (first[:10], last[:10])
