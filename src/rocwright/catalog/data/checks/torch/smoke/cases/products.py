"""Matrix products: each way to ask for one, at and off the edges of tiles, against sums of outer products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smoke.operation import Draw, Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smoke.model import Case

PLAIN = (
    (1, 1, 1),
    (3, 5, 7),
    (16, 16, 16),
    (31, 33, 65),
    (64, 64, 64),
    (127, 129, 63),
    (1, 257, 64),
    (256, 1, 100),
)
LARGER = ((512, 512, 512), (1023, 513, 257), (64, 4096, 64))
LARGEST = ((4096, 4096, 4096), (8191, 1025, 511))
"""Rows, terms, columns: around the powers of two that kernels take as tiles, one row, one term, long sums."""

BATCHES = ((1, 8, 8, 8), (5, 17, 33, 9), (16, 64, 64, 64), (3, 129, 65, 31))
LARGER_BATCHES = ((64, 128, 64, 128), (257, 33, 17, 65))
VECTORS = ((1, 1), (7, 3), (64, 64), (129, 255), (1000, 33))
NAIVE_LIMIT = 1 << 27
"""Up to so many products are added, one outer product after the other; above, the CPU's own is taken."""


def plain(a: Any, b: Any) -> Any:
    """a @ b as a sum of outer products: no BLAS has a part in it."""
    if a.shape[-2] * a.shape[-1] * b.shape[-1] * (a.shape[0] if a.dim() == 3 else 1) > NAIVE_LIMIT:
        return a @ b
    total = a.new_zeros(*a.shape[:-1], b.shape[-1])
    for k in range(a.shape[-1]):
        total += a[..., :, k, None] * b[..., None, k, :]
    return total


def two(draw: Draw, rows: int, terms: int, columns: int) -> tuple[Any, ...]:
    return draw.normal(rows, terms), draw.normal(terms, columns)


def two_and_bias(draw: Draw, rows: int, terms: int, columns: int) -> tuple[Any, ...]:
    return draw.normal(rows, columns), *two(draw, rows, terms, columns)


def for_linear(draw: Draw, rows: int, terms: int, columns: int) -> tuple[Any, ...]:
    return draw.normal(rows, terms), draw.normal(columns, terms), draw.normal(columns)


def batch(draw: Draw, count: int, rows: int, terms: int, columns: int) -> tuple[Any, ...]:
    return draw.normal(count, rows, terms), draw.normal(count, terms, columns)


def batch_and_bias(draw: Draw, count: int, rows: int, terms: int, columns: int) -> tuple[Any, ...]:
    return draw.normal(count, rows, columns), *batch(draw, count, rows, terms, columns)


def flat_and_batch(draw: Draw, count: int, rows: int, terms: int, columns: int) -> tuple[Any, ...]:
    return draw.normal(rows, columns), *batch(draw, count, rows, terms, columns)


def matrix_vector(draw: Draw, rows: int, terms: int) -> tuple[Any, ...]:
    return draw.normal(rows, terms), draw.normal(terms)


def vectors(draw: Draw, terms: int) -> tuple[Any, ...]:
    return draw.normal(terms), draw.normal(terms)


def broadcast(draw: Draw, count: int, rows: int, terms: int, columns: int) -> tuple[Any, ...]:
    return draw.normal(2, count, rows, terms), draw.normal(terms, columns)


def cases() -> Iterator[Case]:
    import torch
    from torch.nn.functional import linear

    flat = {"shapes": PLAIN, "larger": LARGER, "largest": LARGEST}
    many = {"shapes": BATCHES, "larger": LARGER_BATCHES}
    lengths = ((1,), (17,), (255,), (4096,), (100_003,))
    for one in (
        Operation("mm", "product", two, torch.mm, naive=plain, **flat),
        Operation("matmul", "product", broadcast, torch.matmul, naive=plain, **many),
        Operation(
            "mm-transposed",
            "product",
            lambda draw, m, k, n: (draw.normal(k, m), draw.normal(n, k)),
            lambda a, b: a.t() @ b.t(),
            naive=lambda a, b: plain(a.t(), b.t()),
            **flat,
        ),
        Operation(
            "mm-strided",
            "product",
            lambda draw, m, k, n: (draw.normal(2 * m, k + 3), draw.normal(k, 3 * n)),
            lambda a, b: a[::2, 3:] @ b[:, ::3],
            naive=lambda a, b: plain(a[::2, 3:], b[:, ::3]),
            shapes=PLAIN,
        ),
        Operation(
            "addmm",
            "product",
            two_and_bias,
            lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2),
            naive=lambda c, a, b: 0.5 * c + 2 * plain(a, b),
            **flat,
        ),
        Operation("linear", "product", for_linear, linear, naive=lambda x, w, b: plain(x, w.t()) + b, **flat),
        Operation("bmm", "product", batch, torch.bmm, naive=plain, **many),
        Operation(
            "baddbmm",
            "product",
            batch_and_bias,
            lambda c, a, b: torch.baddbmm(c, a, b, beta=0.5, alpha=2),
            naive=lambda c, a, b: 0.5 * c + 2 * plain(a, b),
            **many,
        ),
        Operation(
            "addbmm",
            "product",
            flat_and_batch,
            torch.addbmm,
            naive=lambda c, a, b: c + plain(a, b).sum(0),
            **many,
        ),
        Operation(
            "einsum",
            "product",
            batch,
            lambda a, b: torch.einsum("bij,bjk->bki", a, b),
            naive=lambda a, b: plain(a, b).transpose(1, 2),
            **many,
        ),
        Operation(
            "mv",
            "product",
            matrix_vector,
            torch.mv,
            naive=lambda a, v: plain(a, v[:, None])[:, 0],
            shapes=VECTORS,
            larger=((4096, 1025),),
        ),
        Operation("dot", "product", vectors, torch.dot, naive=lambda a, b: (a * b).sum(), shapes=lengths),
        Operation(
            "outer",
            "product",
            vectors,
            torch.outer,
            naive=lambda a, b: a[:, None] * b,
            shapes=((1,), (65,), (300,)),
        ),
        Operation(
            "complex-mm",
            "product",
            lambda draw, m, k, n: (
                torch.complex(draw.normal(m, k), draw.normal(m, k)),
                torch.complex(draw.normal(k, n), draw.normal(k, n)),
            ),
            torch.mm,
            naive=plain,
            shapes=PLAIN,
            types=("fp64", "fp32"),
        ),
    ):
        yield from one.cases("products")
