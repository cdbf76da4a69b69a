"""The anatomy of a wheel as an SVG picture, and as a page of HTML around it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from rocwheel.units import size
from rocwheel.wheels.lint.model import Finding
from rocwheel.wheels.picture.anatomy import Anatomy, FileParts, Part, colours

WIDTH, MARGIN = 960, 24
BAR = WIDTH - 2 * MARGIN
TOP, ROW, GAP = 96, 44, 56
TARGET_ROW, LABEL = 26, 190
MOST_FILES, LEAST_SHARE = 12, 0.004
"""How many files have a bar of their own, and of which share of the largest on."""


def svg(anatomy: Anatomy) -> str:
    """The picture: a bar for each of the largest files, and one for each target."""
    return _environment().get_template("anatomy.svg.j2").render(**_drawing(anatomy))


def html(anatomy: Anatomy, findings: Sequence[Finding] = ()) -> str:
    """A self-contained page: the picture, tables, and what a judgement found."""
    return (
        _environment()
        .get_template("anatomy.html.j2")
        .render(**_drawing(anatomy), anatomy=anatomy, findings=findings)
    )


def _drawing(anatomy: Anatomy) -> dict[str, Any]:
    totals = anatomy.totals
    files = _most(anatomy.files)
    largest = max((one.size for one in files), default=1) or 1
    widest = max((part.size for part in totals), default=1) or 1
    below = TOP + len(files) * ROW + GAP
    return {
        "width": WIDTH,
        "height": below + len(totals) * TARGET_ROW + MARGIN,
        "margin": MARGIN,
        "name": anatomy.name,
        "size": anatomy.size,
        "packed": anatomy.packed,
        "files": [_bar(one, largest, TOP + number * ROW) for number, one in enumerate(files)],
        "below": below,
        "label": LABEL,
        "targets": [
            {
                "part": part,
                "y": below + number * TARGET_ROW,
                "width": part.size * (BAR - LABEL - 210) / widest,
                "share": part.size / max(1, anatomy.size),
            }
            for number, part in enumerate(totals)
        ],
        "colour": colours(totals),
    }


def _bar(one: FileParts, largest: int, y: int) -> dict[str, Any]:
    segments, x = [], float(MARGIN)
    for part in one.parts:
        width = part.size * BAR / largest
        segments.append({"part": part, "x": x, "width": width})
        x += width
    return {"file": one, "y": y, "segments": segments}


def _most(files: Sequence[FileParts]) -> list[FileParts]:
    """The largest files, and all others as one."""
    least = LEAST_SHARE * max((one.size for one in files), default=0)
    shown = [one for one in files[:MOST_FILES] if one.size >= least]
    rest = files[len(shown) :]
    if not rest:
        return shown
    sums: dict[str, tuple[int, int]] = {}
    for part in (part for one in rest for part in one.parts):
        before = sums.get(part.what, (0, 0))
        sums[part.what] = before[0] + part.size, before[1] + part.count
    together = FileParts(
        path=f"{len(rest):,} smaller files",
        size=sum(one.size for one in rest),
        parts=tuple(Part(what=what, size=one[0], count=one[1]) for what, one in sums.items()),
    )
    return [*shown, together]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("rocwheel.wheels.picture"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["human"] = size
    return environment
