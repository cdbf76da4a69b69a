"""A plan as a picture: SVG drawn here, so that nothing need be installed to look at it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rocwright.plan.decide import Decision, State

BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN = 190, 56, 60, 22, 20
_FILL = {State.RUN: "#fde68a", State.CACHED: "#bbf7d0", State.UNNEEDED: "#e5e7eb"}


def svg(decisions: Sequence[Decision], title: str) -> str:
    """The steps from left to right, each right of what it needs; the colour says what a build would do."""
    by_key = {decision.step.key: decision for decision in decisions}
    column: dict[str, int] = {}
    for key, decision in by_key.items():
        predecessors = [column[item.key] for item in decision.step.inputs if item.key in column]
        column[key] = max(predecessors, default=-1) + 1
    rows: dict[int, int] = {}
    place: dict[str, tuple[int, int]] = {}
    for key in by_key:
        row = rows.get(column[key], 0)
        rows[column[key]] = row + 1
        place[key] = (
            MARGIN + column[key] * (BOX_WIDTH + GAP_X),
            MARGIN + 44 + row * (BOX_HEIGHT + GAP_Y),
        )
    width = 2 * MARGIN + (max(column.values(), default=0) + 1) * (BOX_WIDTH + GAP_X) - GAP_X
    height = 2 * MARGIN + 44 + max(rows.values(), default=1) * (BOX_HEIGHT + GAP_Y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="{MARGIN + 8}" font-size="15" font-weight="600">{escape(title)}</text>',
        _legend(),
    ]
    for key, decision in by_key.items():
        needed = dict.fromkeys(item.key for item in decision.step.inputs if item.key in place)
        parts += [_arrow(place[source], place[key]) for source in needed]
    parts += [_box(decision, *place[key]) for key, decision in by_key.items()]
    return "\n".join([*parts, "</svg>", ""])


def _legend() -> str:
    parts = []
    for count, (state, fill) in enumerate(_FILL.items()):
        x = MARGIN + count * 110
        parts.append(
            f'<rect x="{x}" y="{MARGIN + 18}" width="12" height="12" rx="2" fill="{fill}" stroke="#6b7280"/>'
        )
        parts.append(f'<text x="{x + 18}" y="{MARGIN + 29}" font-size="12">{state.value}</text>')
    return "\n".join(parts)


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1 = start[0] + BOX_WIDTH, start[1] + BOX_HEIGHT // 2
    x2, y2 = end[0], end[1] + BOX_HEIGHT // 2
    middle = x2 - GAP_X // 2
    return (
        f'<path d="M{x1},{y1} C{middle},{y1} {middle},{y2} {x2 - 6},{y2}" fill="none" stroke="#6b7280" '
        f'stroke-width="1.4"/><path d="M{x2 - 7},{y2 - 4} L{x2},{y2} L{x2 - 7},{y2 + 4} Z" fill="#6b7280"/>'
    )


def _box(decision: Decision, x: int, y: int) -> str:
    reason = decision.reasons[0] if decision.state is State.RUN and decision.reasons else decision.state.value
    short = reason if len(reason) <= 28 else f"{reason[:27]}…"
    return (
        f"<g><title>{escape(decision.step.name)}: "
        f"{escape('; '.join(decision.reasons) or decision.state.value)}\n"
        f"key {decision.step.key}</title>"
        f'<rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="7" '
        f'fill="{_FILL[decision.state]}" stroke="#4b5563"/>'
        f'<text x="{x + 10}" y="{y + 22}" font-weight="600">{escape(decision.step.name)}</text>'
        f'<text x="{x + 10}" y="{y + 42}" font-size="11" fill="#374151">{escape(short)} · '
        f"{decision.step.key[:8]}</text></g>"
    )
