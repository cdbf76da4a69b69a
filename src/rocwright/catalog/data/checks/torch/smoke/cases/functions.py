"""Functions of single values: the device's own library of them, against Python's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from smoke.operation import Draw, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from smoke.model import Case

SHAPES = ((1,), (31,), (64,), (1025,), (7, 129))
LARGER = ((100_003,),)


def within(low: float, high: float) -> Callable[..., tuple[Any, ...]]:
    return lambda draw, *shape: (draw.uniform(*shape, low=low, high=high),)


def each(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return lambda x: x.new_tensor([function(one) for one in x.flatten().tolist()]).reshape(x.shape)


def gelu(x: float) -> float:
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def pairs(draw: Draw, *shape: int) -> tuple[Any, ...]:
    return draw.normal(*shape), draw.uniform(*shape, low=0.5, high=2)


def special(draw: Draw, *shape: int) -> tuple[Any, ...]:
    """Zeros of both signs, infinities, no number, and ordinary values between them."""
    values = draw.normal(*shape).flatten()
    for place, value in enumerate((0.0, -0.0, math.inf, -math.inf, math.nan)):
        values[place::7] = value
    return (values.reshape(shape),)


def cases() -> Iterator[Case]:
    import torch
    from torch.nn import functional

    rows: tuple[tuple[str, Any, Any, Any], ...] = (
        ("exp", within(-5, 5), torch.exp, math.exp),
        ("log", within(0.1, 100), torch.log, math.log),
        ("sin", within(-6, 6), torch.sin, math.sin),
        ("cos", within(-6, 6), torch.cos, math.cos),
        ("tanh", within(-4, 4), torch.tanh, math.tanh),
        ("erf", within(-3, 3), torch.erf, math.erf),
        ("sqrt", within(0, 1000), torch.sqrt, math.sqrt),
        ("rsqrt", within(0.1, 1000), torch.rsqrt, lambda x: 1 / math.sqrt(x)),
        ("sigmoid", within(-8, 8), torch.sigmoid, sigmoid),
        ("gelu", within(-4, 4), functional.gelu, gelu),
        ("silu", within(-8, 8), functional.silu, lambda x: x * sigmoid(x)),
        ("pow", within(0.2, 3), lambda x: x.pow(2.5), lambda x: math.pow(x, 2.5)),
    )
    for name, inputs, run, reference in rows:
        one = Operation(name, "function", inputs, run, shapes=SHAPES, larger=LARGER, naive=each(reference))
        yield from one.cases("functions")
    for one in (
        Operation(
            "add-mul-div",
            "function",
            pairs,
            lambda a, b: (a + b, a * b, a / b, a - 3),
            shapes=SHAPES,
            larger=LARGER,
            naive=lambda a, b: tuple(
                a.new_tensor(
                    [put(x, y) for x, y in zip(a.flatten().tolist(), b.flatten().tolist(), strict=False)]
                ).reshape(a.shape)
                for put in (
                    lambda x, y: x + y,
                    lambda x, y: x * y,
                    lambda x, y: x / y,
                    lambda x, y: x - 3,
                )
            ),
        ),
        Operation(
            "infinite-and-nan",
            "function",
            special,
            lambda x: (
                x.isnan(),
                x.isinf(),
                x.abs(),
                x.clamp(-1, 1),
                torch.nan_to_num(x, 5.0, 6.0, -6.0),
                x * 0,
                x + 1,
            ),
            shapes=((64,), (1000,)),
        ),
    ):
        yield from one.cases("functions")
