"""Hours by the number of machines, as an SVG with two logarithmic axes in each panel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import log

WIDTH, HEIGHT = 760, 424
TOP, BOTTOM = 96, 340
PANELS = ((64, 356), (436, 728))
"""Left and right of each."""

HOURS = (2, 5, 10, 20, 50, 100, 200)
LEAST, MOST = 1.5, 300.0
TICKS = (1, 4, 16, 64)

APART = 0.95
"""Of two times, the part of the longer below which both are written down."""

STYLE = """
  svg { background: #fff; font-family: system-ui, "DejaVu Sans", sans-serif }
  text { fill: #1d2530; font-size: 12px }
  .title { font-size: 16px; font-weight: 600 }
  .head { font-size: 13px; font-weight: 600 }
  .quiet { fill: #5b6672 }
  .grid { stroke: #dde3ea; stroke-width: 1 }
  .axis { stroke: #8995a3; stroke-width: 1 }
  .never { fill: #eef1f5 }
  .edge { stroke: #8995a3; stroke-width: 1.5; stroke-dasharray: 4 4; fill: none }
  .whole { stroke: #1f6fb4; fill: #1f6fb4 }
  .split { stroke: #c8641b; fill: #c8641b }
  polyline.whole, polyline.split { fill: none; stroke-width: 2.5; stroke-linejoin: round }
  text.whole, text.split { stroke: #fff; stroke-width: 4; stroke-linejoin: round; paint-order: stroke }
  text.whole, text.split { font-weight: 600 }
  .middle { text-anchor: middle } .end { text-anchor: end }
  @media (prefers-color-scheme: dark) {
    svg { background: #12161c } text { fill: #e4e9ef } .quiet { fill: #98a4b1 } .grid { stroke: #29313b }
    .axis, .edge { stroke: #6b7785 } .never { fill: #1b222b }
    .whole { stroke: #6cb2f0; fill: #6cb2f0 } .split { stroke: #f0a060; fill: #f0a060 }
    text.whole, text.split { stroke: #12161c }
  }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Hours by the number of machines, for steps that are `whole` and that are `split`; `work` are the hours
    of one machine that all steps are."""

    title: str
    curves: Mapping[str, Sequence[tuple[int, float]]]
    work: float


def draw(panels: Sequence[Panel]) -> str:
    """The picture, with panels side by side."""
    title = "How long all rows take, by the number of machines"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
            f'height="{HEIGHT}" role="img" aria-label="{title}">',
            f"<style>{STYLE}</style>",
            f'<text class="title" x="24" y="32">{title}</text>',
            *_legend(),
            *(line for panel, ends in zip(panels, PANELS, strict=True) for line in _panel(panel, *ends)),
            "</svg>",
            "",
        ]
    )


def _legend() -> Iterator[str]:
    y = HEIGHT - 18
    for x, name, words in (
        (64, "whole", "each step on one machine"),
        (268, "split", "large steps in shards"),
    ):
        yield f'<polyline class="{name}" points="{x},{y - 4} {x + 24},{y - 4}"/>'
        yield f'<circle class="{name}" cx="{x + 12}" cy="{y - 4}" r="4"/>'
        yield f'<text x="{x + 32}" y="{y}">{words}</text>'
    yield f'<rect class="never" x="448" y="{y - 12}" width="24" height="14"/>'
    yield f'<path class="edge" d="M448,{y - 12} h24"/>'
    yield f'<text x="480" y="{y}">less than all work shared out evenly</text>'


def _panel(panel: Panel, left: int, right: int) -> Iterator[str]:
    def x(machines: float) -> float:
        return left + 16 + (right - left - 40) * log(machines) / log(TICKS[-1])

    def y(hours: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * log(hours / LEAST) / log(MOST / LEAST)

    yield f'<text class="head" x="{left}" y="{TOP - 24}">{escape(panel.title)}</text>'
    # where all work shared out takes as little as is shown
    last = min(panel.work / LEAST, TICKS[-1])
    points = f"{x(1):.1f},{y(panel.work):.1f} {x(last):.1f},{y(panel.work / last):.1f}"
    below = f"{x(last):.1f},{BOTTOM} {x(1):.1f},{BOTTOM}"
    yield f'<polygon class="never" points="{points} {below}"/>'
    for line in HOURS:
        yield f'<path class="grid" d="M{left},{y(line):.1f} H{right}"/>'
        yield f'<text class="quiet end" x="{left - 8}" y="{y(line) + 4:.1f}">{line} h</text>'
    yield f'<polyline class="edge" points="{points}"/>'
    yield f'<path class="axis" d="M{left},{BOTTOM} H{right}"/>'
    for tick in TICKS:
        yield f'<path class="axis" d="M{x(tick):.1f},{BOTTOM} v5"/>'
        yield f'<text class="quiet middle" x="{x(tick):.1f}" y="{BOTTOM + 20}">{tick}</text>'
    middle = (left + right) / 2
    yield f'<text class="quiet middle" x="{middle:.1f}" y="{BOTTOM + 38}">machines of 2 cores</text>'
    for name in ("split", "whole"):
        curve = panel.curves[name]
        points = " ".join(f"{x(many):.1f},{y(taken):.1f}" for many, taken in curve)
        yield f'<polyline class="{name}" points="{points}"/>'
        for many, taken in curve:
            yield f'<circle class="{name}" cx="{x(many):.1f}" cy="{y(taken):.1f}" r="4"><title>'
            yield f"{many} machines: {taken:.1f} h</title></circle>"
    for at, (one, hours) in enumerate(panel.curves["whole"]):
        # beside the line, where that falls
        shift, anchor = (8.0, "") if at < 2 else (0.0, " middle")
        place = f'x="{x(one) + shift:.1f}" y="{y(hours) - 10:.1f}"'
        yield f'<text class="whole{anchor}" {place}>{_hours(hours)}</text>'
        split = panel.curves["split"][at][1]
        if split < APART * hours:
            place = f'x="{x(one):.1f}" y="{y(split) + 20:.1f}"'
            yield f'<text class="split middle" {place}>{_hours(split)}</text>'


def _hours(hours: float) -> str:
    return f"{hours:.0f} h" if hours >= 10 else f"{hours:.1f} h"
