"""Reductions over all values, over rows and over columns, against sums that do not round (math.fsum)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from smoke.operation import Draw, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from smoke.model import Case

SHAPES = ((1, 1), (3, 5), (64, 64), (127, 65), (1, 1025), (1025, 1), (33, 1000))
LARGER = ((1000, 1001), (3, 100_003))
LARGEST = ((4097, 8191),)


def each_way(function: Callable[..., Any]) -> Callable[[Any], tuple[Any, ...]]:
    """A reduction over all values, along rows, and along columns."""
    return lambda x: (function(x.flatten(), 0), function(x, 1), function(x, 0))


def by_rows(function: Callable[[list[float]], float]) -> Callable[[Any], tuple[Any, ...]]:
    """The same of a function of a list of numbers."""

    def over(x: Any, dim: int) -> Any:
        rows = x.movedim(dim, -1)
        values = [function(row) for row in rows.reshape(-1, rows.shape[-1]).tolist()]
        return x.new_tensor(values).reshape(rows.shape[:-1])

    return each_way(over)


def normal(draw: Draw, rows: int, columns: int) -> tuple[Any, ...]:
    return (draw.normal(rows, columns),)


def near_one(draw: Draw, rows: int, columns: int) -> tuple[Any, ...]:
    """Factors whose product stays in the range of every type."""
    return (1 + draw.normal(rows, columns) / (8 * max(rows, columns) ** 0.5),)


def mixed(draw: Draw, rows: int, columns: int) -> tuple[Any, ...]:
    return (draw.mixed(rows, columns),)


def variance(row: list[float]) -> float:
    mean = math.fsum(row) / len(row)
    return math.fsum((one - mean) ** 2 for one in row) / len(row)


def running(row: list[float]) -> list[float]:
    total, sums = 0.0, []
    for one in row:
        total += one
        sums.append(total)
    return sums


def softmax(row: list[float]) -> list[float]:
    largest = max(row)
    parts = [math.exp(one - largest) for one in row]
    whole = math.fsum(parts)
    return [one / whole for one in parts]


def log_sum(row: list[float]) -> float:
    largest = max(row)
    return largest + math.log(math.fsum(math.exp(one - largest) for one in row))


def normalized(row: list[float]) -> list[float]:
    mean, deviation = math.fsum(row) / len(row), math.sqrt(variance(row) + 1e-5)
    return [(one - mean) / deviation for one in row]


def along_last(function: Callable[[list[float]], list[float]]) -> Callable[[Any], Any]:
    return lambda x: x.new_tensor([function(row) for row in x.tolist()]).reshape(x.shape)


def first_of(pick: Callable[[list[float]], float]) -> Callable[[Any], Any]:
    """The place of the largest or smallest in each row; they are all different in fp64 and fp32."""

    def places(x: Any) -> Any:
        import torch

        return torch.tensor([row.index(pick(row)) for row in x.tolist()])

    return places


def cases() -> Iterator[Case]:
    import torch

    all_shapes = {"shapes": SHAPES, "larger": LARGER, "largest": LARGEST}
    some = {"shapes": SHAPES, "larger": LARGER}
    exact = ("fp64", "fp32")
    for one in (
        Operation("sum", "reduction", normal, each_way(torch.sum), naive=by_rows(math.fsum), **all_shapes),
        Operation(
            "mean",
            "reduction",
            normal,
            each_way(torch.mean),
            naive=by_rows(lambda r: math.fsum(r) / len(r)),
            **some,
        ),
        Operation(
            "prod", "scan", near_one, each_way(torch.prod), SHAPES, naive=by_rows(math.prod), types=exact
        ),
        Operation(
            "var",
            "scan",
            normal,
            each_way(lambda x, dim: torch.var(x, dim, correction=0)),
            naive=by_rows(variance),
            **some,
        ),
        Operation(
            "norm",
            "scan",
            normal,
            each_way(lambda x, dim: torch.linalg.vector_norm(x, dim=dim)),
            naive=by_rows(lambda row: math.sqrt(math.fsum(one * one for one in row))),
            **some,
        ),
        Operation(
            "norm-1",
            "scan",
            normal,
            each_way(lambda x, dim: torch.linalg.vector_norm(x, 1, dim=dim)),
            naive=by_rows(lambda row: math.fsum(abs(one) for one in row)),
            **some,
        ),
        Operation("max", "exact", normal, each_way(torch.amax), naive=by_rows(max), **some),
        Operation("min", "exact", normal, each_way(torch.amin), naive=by_rows(min), **some),
        Operation("argmax", "exact", mixed, lambda x: x.argmax(1), naive=first_of(max), types=exact, **some),
        Operation("argmin", "exact", mixed, lambda x: x.argmin(1), naive=first_of(min), types=exact, **some),
        Operation("cumsum", "scan", normal, lambda x: x.cumsum(1), naive=along_last(running), **some),
        Operation(
            "logsumexp", "reduction", normal, each_way(torch.logsumexp), naive=by_rows(log_sum), **some
        ),
        Operation("softmax", "softmax", normal, lambda x: x.softmax(1), naive=along_last(softmax), **some),
        Operation(
            "log-softmax",
            "reduction",
            normal,
            lambda x: x.log_softmax(1),
            naive=along_last(lambda row: (lambda whole: [one - whole for one in row])(log_sum(row))),
            **some,
        ),
        Operation(
            "layer-norm",
            "reduction",
            normal,
            lambda x: torch.nn.functional.layer_norm(x, x.shape[1:]),
            naive=along_last(normalized),
            **some,
        ),
        Operation(
            "all-any",
            "exact",
            normal,
            lambda x: ((x > -2.5).all(1), (x > 2).any(1)),
            naive=lambda x: tuple(
                torch.tensor([pick(test(one) for one in row) for row in x.tolist()])
                for pick, test in ((all, lambda one: one > -2.5), (any, lambda one: one > 2))
            ),
            types=exact,
            **some,
        ),
    ):
        yield from one.cases("reductions")
