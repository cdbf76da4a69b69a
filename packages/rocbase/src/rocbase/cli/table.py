"""Tables as lines of text, as wide as the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest

from rocbase.terminal import columns

LONGEST_WORD = 24
"""Columns up to which a word is not broken in a narrow terminal."""

BROKEN = 6
"""Columns that a cell keeps where words must be broken all the same."""


def lines(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> Iterator[str]:
    """The header, then the rows; `right` columns are aligned to the right.

    In a terminal that is too narrow the widest cells take several lines.
    """
    texts = [[str(cell) for cell in row] for row in rows]
    natural = [max((len(row[i]) for row in [list(header), *texts]), default=0) for i in range(len(header))]
    by_column = [[header[i], *(row[i] for row in texts)] for i in range(len(header))]
    minimum, parts = (
        [natural[i] if i in right else _minimum_width(cells, split) for i, cells in enumerate(by_column)]
        for split in (str.split, _parts)
    )
    # what a row is called stays whole, as long as any other word can be broken, where it has a joint first
    widths = natural
    for floor in (
        minimum,
        [*minimum[:1], *parts[1:]],
        [*minimum[:1], *(min(width, BROKEN) for width in minimum[1:])],
    ):
        widths = _narrowed(widths, floor, columns())

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    yield line(header)
    for row in texts:
        cells = [wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        for some in zip_longest(*cells, fillvalue=""):
            yield line(some)


def _narrowed(natural: Sequence[int], floor: Sequence[int], room: int) -> list[int]:
    """The widths that fit into so many columns of a terminal (0: any number), the widest narrowed first, and
    none below its `floor`."""
    widths = list(natural)
    while room and sum(widths) + 2 * (len(widths) - 1) > room:
        able = [i for i, width in enumerate(widths) if width > floor[i]]
        if not able:
            break
        widths[max(able, key=lambda i: widths[i])] -= 1
    return widths


def _minimum_width(cells: Iterable[str], split: Callable[[str], list[str]]) -> int:
    """How narrow a column may become: as the longest word or part of one."""
    return max((min(len(word), LONGEST_WORD) for cell in cells for word in split(cell)), default=0)


def _parts(text: str) -> list[str]:
    """Words in parts that end with their joints: debian:experimental is debian: and experimental."""
    return re.findall(r"[^\s:/,]+[:/,]*|[:/,]+", text)


def wrapped(cell: str, width: int) -> list[str]:
    """A text in lines of that many columns at most, as far as its words, or else their parts, allow."""
    if len(cell) <= width:
        return [cell]
    from textwrap import wrap  # most tables need none of it

    words = ([word] if len(word) <= width else _joined(_parts(word), width) for word in cell.split())
    return wrap(" ".join(part for parts in words for part in parts), width, break_on_hyphens=False)


def _joined(parts: Iterable[str], width: int) -> list[str]:
    """The parts of one word, put together again as far as they fit."""
    joined = [""]
    for part in parts:
        if joined[-1] and len(joined[-1]) + len(part) > width:
            joined.append("")
        joined[-1] += part
    return joined
