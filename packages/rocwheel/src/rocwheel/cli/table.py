"""Tables as lines of text, as wide as the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from rocwheel.terminal import columns

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
    least = [
        natural[i] if i in right else _least([header[i], *(row[i] for row in texts)])
        for i in range(len(header))
    ]
    # what a row is called stays whole, as long as any other word can be broken
    broken = [*least[:1], *(min(one, BROKEN) for one in least[1:])]
    widths = _narrowed(_narrowed(natural, least, columns()), broken, columns())

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


def _narrowed(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths that fit into so many columns of a terminal (0: any number), the widest narrowed first, and
    none below its `least`."""
    widths = list(natural)
    while room and sum(widths) + 2 * (len(widths) - 1) > room:
        able = [i for i, width in enumerate(widths) if width > least[i]]
        if not able:
            break
        widths[max(able, key=lambda i: widths[i])] -= 1
    return widths


def _least(cells: Iterable[str]) -> int:
    """How narrow a column may become: as its longest word."""
    return max((min(len(word), LONGEST_WORD) for cell in cells for word in cell.split()), default=0)


def wrapped(cell: str, width: int) -> list[str]:
    """A text in lines of that many columns at most, as far as its words allow."""
    if len(cell) <= width:
        return [cell]
    from textwrap import wrap  # most tables need none of it

    return wrap(cell, width, break_on_hyphens=False)
