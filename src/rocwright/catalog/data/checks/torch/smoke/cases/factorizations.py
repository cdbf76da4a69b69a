"""Linear algebra: what is solved or factorized must give back what it was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smoke.cases.products import plain
from smoke.operation import Draw, Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smoke.model import Case

SHAPES = ((1, 1), (1, 3), (4, 8), (2, 33), (1, 64), (1, 129))
LARGER = ((8, 128), (1, 513))
LARGEST = ((1, 4096),)
TYPES = ("fp64", "fp32")
"""How many matrices, and their order."""


def well_conditioned(draw: Draw, count: int, order: int) -> tuple[Any, ...]:
    """An identity with some noise: its condition number is small."""
    return (eye(order) + 0.3 * draw.normal(count, order, order) / order**0.5,)


def with_right_side(draw: Draw, count: int, order: int) -> tuple[Any, ...]:
    return *well_conditioned(draw, count, order), draw.normal(count, order, 3)


def positive(draw: Draw, count: int, order: int) -> tuple[Any, ...]:
    a = draw.normal(count, order, order) / order**0.5
    return (eye(order) + plain(a, a.transpose(-1, -2)),)


def symmetric(draw: Draw, count: int, order: int) -> tuple[Any, ...]:
    a = draw.normal(count, order, order)
    return ((a + a.transpose(-1, -2)) / 2,)


def tall(draw: Draw, count: int, order: int) -> tuple[Any, ...]:
    return (draw.normal(count, order + 5, order),)


def eye(order: int) -> Any:
    import torch

    return torch.eye(order, dtype=torch.float64)


def back(*parts: Any) -> Any:
    """The product of the parts in fp64 on the CPU: the check's own rounding does not count."""
    total = parts[0].double().cpu()
    for one in parts[1:]:
        total = plain(total, one.double().cpu())
    return total.to(parts[0].device)


def identities(x: Any, order: int) -> Any:
    return eye(order).expand(x.shape[0], order, order)


def cases() -> Iterator[Case]:
    from torch import linalg

    def turned(x: Any) -> Any:
        return x.transpose(-1, -2)

    def qr(x: Any) -> Any:
        q, r = linalg.qr(x)
        return back(q, r), back(turned(q), q), r.tril(-1)

    def svd(x: Any) -> Any:
        u, s, v = linalg.svd(x, full_matrices=False)
        return back(u * s[..., None, :], v), back(turned(u), u), s

    def eigh(x: Any) -> Any:
        values, vectors = linalg.eigh(x)
        return back(vectors * values[..., None, :], turned(vectors)), back(turned(vectors), vectors)

    def lu(x: Any) -> Any:
        p, lower, upper = linalg.lu(x)
        return back(p, lower, upper), lower.triu(1), upper.tril(-1)

    def singular_values(x: Any) -> Any:
        return linalg.eigvalsh(plain(turned(x), x)).clamp(min=0).sqrt().flip(-1)

    every = {"shapes": SHAPES, "larger": LARGER, "largest": LARGEST, "types": TYPES}
    for one in (
        Operation(
            "solve",
            "factorization",
            with_right_side,
            lambda a, b: back(a, linalg.solve(a, b)),
            naive=lambda a, b: b,
            **every,
        ),
        Operation(
            "inv",
            "factorization",
            well_conditioned,
            lambda a: back(a, linalg.inv(a)),
            naive=lambda a: identities(a, a.shape[-1]),
            **every,
        ),
        Operation(
            "cholesky",
            "factorization",
            positive,
            lambda a: (lambda low: (back(low, turned(low)), low.triu(1)))(linalg.cholesky(a)),
            naive=lambda a: (a, a * 0),
            **every,
        ),
        Operation("lu", "factorization", well_conditioned, lu, naive=lambda a: (a, a * 0, a * 0), **every),
        Operation(
            "qr",
            "factorization",
            tall,
            qr,
            naive=lambda a: (a, identities(a, a.shape[-1]), identities(a, a.shape[-1]) * 0),
            **every,
        ),
        Operation(
            "svd",
            "factorization",
            tall,
            svd,
            naive=lambda a: (
                a,
                identities(a, a.shape[-1]),
                singular_values(a),
            ),
            **{**every, "largest": ()},
        ),
        Operation(
            "eigh",
            "factorization",
            symmetric,
            eigh,
            naive=lambda a: (a, identities(a, a.shape[-1])),
            **{**every, "largest": ()},
        ),
        Operation(
            "det",
            "factorization",
            well_conditioned,
            linalg.det,
            naive=lambda a: a.new_tensor([determinant(one) for one in a.tolist()]),
            shapes=SHAPES,
            types=TYPES,
        ),
        Operation(
            "triangular-solve",
            "factorization",
            with_right_side,
            lambda a, b: back(a.tril(), linalg.solve_triangular(a.tril(), b, upper=False)),
            naive=lambda a, b: b,
            **every,
        ),
    ):
        yield from one.cases("factorizations")


def determinant(rows: list[list[float]]) -> float:
    """By elimination with the largest pivot of each column."""
    rows, found = [list(row) for row in rows], 1.0
    for place in range(len(rows)):
        best = max(range(place, len(rows)), key=lambda row: abs(rows[row][place]))
        if best != place:
            rows[place], rows[best], found = rows[best], rows[place], -found
        pivot = rows[place]
        found *= pivot[place]
        for row in rows[place + 1 :]:
            factor = row[place] / pivot[place]
            for column in range(place, len(row)):
                row[column] -= factor * pivot[column]
    return found
