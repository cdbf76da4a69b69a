"""Sorting, choosing the largest, and what is the same: against Python's own sort."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smoke.model import WrongError
from smoke.operation import Draw, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from smoke.model import Case

SHAPES = ((1, 1), (3, 31), (5, 64), (2, 1025), (33, 128), (1, 5000))
LARGER = ((1, 100_003), (257, 2049))
LARGEST = ((1, (1 << 24) + 1),)


def normal(draw: Draw, rows: int, columns: int) -> tuple[Any, ...]:
    return (draw.normal(rows, columns),)


def few_values(draw: Draw, rows: int, columns: int) -> tuple[Any, ...]:
    return (draw.integers(-20, 20, rows, columns),)


def with_places(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The values that a sort gives; its places must hold them, each place once in a row."""

    def run(x: Any) -> Any:
        values, places = function(x)
        if not bool((x.gather(-1, places) == values).all()):
            raise WrongError("the places do not hold the values that were given with them")
        if not bool((places.sort(-1).values.diff() > 0).all()):
            raise WrongError("a place was given twice")
        return values

    return run


def rows(function: Callable[[list[Any]], list[Any]]) -> Callable[[Any], Any]:
    return lambda x: x.new_tensor([function(row) for row in x.tolist()])


def several(columns: int) -> int:
    return max(1, min(17, columns // 2))


def cases() -> Iterator[Case]:
    import torch

    every = {"shapes": SHAPES, "larger": LARGER}
    for one in (
        Operation(
            "sort",
            "exact",
            normal,
            with_places(lambda x: x.sort(-1)),
            naive=rows(sorted),
            largest=LARGEST,
            **every,
        ),
        Operation(
            "sort-down",
            "exact",
            normal,
            with_places(lambda x: x.sort(-1, descending=True)),
            naive=rows(lambda row: sorted(row, reverse=True)),
            **every,
        ),
        Operation(
            "sort-stable",
            "exact",
            few_values,
            lambda x: x.sort(dim=-1, stable=True),
            naive=lambda x: (
                rows(sorted)(x),
                rows(lambda row: sorted(range(len(row)), key=row.__getitem__))(x),
            ),
            types=("fp64",),
            **every,
        ),
        Operation(
            "topk",
            "exact",
            normal,
            with_places(lambda x: x.topk(several(x.shape[-1]), -1)),
            naive=rows(lambda row: sorted(row, reverse=True)[: several(len(row))]),
            **every,
        ),
        Operation(
            "median",
            "exact",
            normal,
            lambda x: (x.median(-1).values, x.kthvalue(several(x.shape[-1]), -1).values),
            naive=lambda x: (
                x.new_tensor([sorted(row)[(len(row) - 1) // 2] for row in x.tolist()]),
                x.new_tensor([sorted(row)[several(len(row)) - 1] for row in x.tolist()]),
            ),
            types=("fp64", "fp32"),
            **every,
        ),
        Operation(
            "unique",
            "exact",
            few_values,
            lambda x: x.unique(return_counts=True),
            naive=lambda x: (
                torch.tensor(sorted(set(x.flatten().tolist()))),
                torch.tensor([x.flatten().tolist().count(one) for one in sorted(set(x.flatten().tolist()))]),
            ),
            types=("fp64",),
            **every,
        ),
        Operation(
            "searchsorted",
            "exact",
            lambda draw, r, c: (draw.normal(r, c).sort(-1).values, draw.normal(r, 50)),
            torch.searchsorted,
            naive=lambda edges, x: torch.tensor(
                [
                    [sum(e < v for e in row) for v in those]
                    for row, those in zip(edges.tolist(), x.tolist(), strict=False)
                ]
            ),
            shapes=SHAPES,
            types=("fp64", "fp32"),
        ),
        Operation(
            "bincount",
            "exact",
            lambda draw, r, c: (draw.integers(0, 100, r * c),),
            lambda x: x.bincount(minlength=100),
            naive=lambda x: torch.tensor([x.tolist().count(one) for one in range(100)]),
            types=("fp64",),
            shapes=SHAPES,
        ),
    ):
        yield from one.cases("sorting")
