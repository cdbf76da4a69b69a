"""Embedding, gather, scatter and masks: which value goes where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smoke.operation import Draw, Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smoke.model import Case

SHAPES = ((1, 1, 1), (7, 3, 5), (64, 32, 100), (100, 65, 33), (1000, 17, 500))
LARGER = ((50_000, 128, 3000),)
"""Rows of the table, columns, and how many places are asked for."""


def table_and_places(draw: Draw, rows: int, columns: int, count: int) -> tuple[Any, ...]:
    return draw.normal(rows, columns), draw.integers(0, rows, count)


def different_places(draw: Draw, rows: int, columns: int, count: int) -> tuple[Any, ...]:
    import torch

    kept = min(rows, count)
    return (
        draw.normal(rows, columns),
        torch.randperm(rows, generator=draw.generator)[:kept],
        draw.normal(kept, columns),
    )


def repeated_places(draw: Draw, rows: int, columns: int, count: int) -> tuple[Any, ...]:
    return draw.normal(rows, columns), draw.integers(0, rows, count), draw.normal(count, columns)


def picked(table: Any, places: Any) -> Any:
    return table.new_tensor([table[one].tolist() for one in places.tolist()])


def put(table: Any, places: Any, values: Any) -> Any:
    rows = table.tolist()
    for place, row in zip(places.tolist(), values.tolist(), strict=False):
        rows[place] = row
    return table.new_tensor(rows)


def added(table: Any, places: Any, values: Any) -> Any:
    rows = table.tolist()
    for place, row in zip(places.tolist(), values.tolist(), strict=False):
        rows[place] = [one + other for one, other in zip(rows[place], row, strict=False)]
    return table.new_tensor(rows)


def largest(table: Any, places: Any, values: Any) -> Any:
    rows = table.tolist()
    for place, row in zip(places.tolist(), values.tolist(), strict=False):
        rows[place] = [max(one, other) for one, other in zip(rows[place], row, strict=False)]
    return table.new_tensor(rows)


def across(places: Any, values: Any) -> Any:
    return places[:, None].expand(-1, values.shape[1])


def cases() -> Iterator[Case]:
    import torch
    from torch.nn import functional

    every = {"shapes": SHAPES, "larger": LARGER}
    for one in (
        Operation(
            "embedding",
            "exact",
            table_and_places,
            lambda t, at: functional.embedding(at, t),
            naive=picked,
            **every,
        ),
        Operation(
            "index-select",
            "exact",
            table_and_places,
            lambda t, at: t.index_select(0, at),
            naive=picked,
            **every,
        ),
        Operation("index", "exact", table_and_places, lambda t, at: t[at], naive=picked, **every),
        Operation(
            "gather",
            "exact",
            table_and_places,
            lambda t, at: t.gather(0, at[:, None].expand(-1, t.shape[1])),
            naive=picked,
            **every,
        ),
        Operation(
            "index-put", "exact", different_places, lambda t, at, v: t.index_put((at,), v), naive=put, **every
        ),
        Operation(
            "scatter",
            "exact",
            different_places,
            lambda t, at, v: t.scatter(0, across(at, v), v),
            naive=put,
            **every,
        ),
        Operation(
            "scatter-add",
            "reduction",
            repeated_places,
            lambda t, at, v: t.scatter_add(0, across(at, v), v),
            naive=added,
            types=("fp64", "fp32"),
            **every,
        ),
        Operation(
            "index-add",
            "reduction",
            repeated_places,
            lambda t, at, v: t.index_add(0, at, v),
            naive=added,
            types=("fp64", "fp32"),
            **every,
        ),
        Operation(
            "scatter-max",
            "exact",
            repeated_places,
            lambda t, at, v: t.scatter_reduce(0, across(at, v), v, "amax"),
            naive=largest,
            types=("fp64", "fp32"),
            shapes=SHAPES,
        ),
        Operation(
            "masked",
            "exact",
            lambda draw, r, c, n: (draw.normal(r, c),),
            lambda t: (t[t > 0], t.masked_fill(t > 0, 0), torch.where(t > 0, t, -t), (t > 0).nonzero()),
            naive=lambda t: (
                t.new_tensor([one for one in t.flatten().tolist() if one > 0]),
                t.new_tensor([[0 if one > 0 else one for one in row] for row in t.tolist()]),
                t.abs(),
                torch.tensor(
                    [[i, j] for i, row in enumerate(t.tolist()) for j, one in enumerate(row) if one > 0]
                ).reshape(-1, 2),
            ),
            shapes=SHAPES,
        ),
    ):
        yield from one.cases("indexing")
