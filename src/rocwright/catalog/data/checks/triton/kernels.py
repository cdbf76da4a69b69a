"""Kernels of the kinds that torch.compile writes, attention's forward pass, and their results in numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy
import triton
import triton.language as tl
from numpy.typing import NDArray

Array = NDArray[Any]
ROWS, COLUMNS, SIDE, HEAD = 4, 200, 32, 32
LENGTH = ROWS * COLUMNS


@dataclass(frozen=True)
class Kernel:
    """A kernel: its function, the types of its arrays, its constants, its grid and what it computes.

    The last array is the result; `expected` gets the others.
    """

    name: str
    function: Any
    arrays: tuple[str, ...]
    expected: Callable[..., Array]
    shapes: tuple[tuple[int, ...], ...]
    constants: dict[str, object] = field(default_factory=dict)
    grid: int = 1
    tolerance: float = 1e-5
    options: dict[str, int] = field(default_factory=dict)


@triton.jit
def pointwise(x, y, out, operation: tl.constexpr, length: tl.constexpr, block: tl.constexpr):
    index = tl.program_id(0) * block + tl.arange(0, block)
    mask = index < length
    a = tl.load(x + index, mask, 1)
    b = tl.load(y + index, mask, 1)
    if operation == "add":
        result = a + b
    elif operation == "scaled":
        result = a * 2 + b
    elif operation == "relu":
        result = tl.maximum(a, 0)
    elif operation == "clamp":
        result = tl.minimum(tl.maximum(a, -0.5), 0.5)
    elif operation == "where":
        result = tl.where(a > b, a, b)
    elif operation == "gelu":
        result = a * 0.5 * (1 + tl.erf(a * 0.7071067811865476))
    elif operation == "silu":
        result = a / (1 + tl.exp(-a))
    elif operation == "exp":
        result = tl.exp(a)
    elif operation == "log":
        result = tl.log(tl.abs(a) + 1)
    elif operation == "sqrt":
        result = tl.sqrt(tl.abs(a))
    elif operation == "rsqrt":
        result = tl.rsqrt(tl.abs(a) + 1)
    elif operation == "sin":
        result = tl.sin(a)
    elif operation == "cos":
        result = tl.cos(a)
    elif operation == "tanh":
        result = 2 * tl.sigmoid(2 * a) - 1
    elif operation == "divide":
        result = a / (tl.abs(b) + 1)
    else:
        result = a * a + b * b
    tl.store(out + index, result, mask)


@triton.jit
def rows(x, y, out, operation: tl.constexpr, columns: tl.constexpr, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    mask = column < columns
    a = tl.load(x + row * columns + column, mask, 0).to(tl.float32)
    low = tl.where(mask, a, -float("inf"))
    if operation == "argmax":
        tl.store(out + row, tl.argmax(low, 0))
    elif operation == "sum":
        tl.store(out + row, tl.sum(a, 0))
    elif operation == "max":
        tl.store(out + row, tl.max(low, 0))
    elif operation == "logsumexp":
        top = tl.max(low, 0)
        tl.store(out + row, top + tl.log(tl.sum(tl.exp(low - top), 0)))
    else:
        b = tl.load(y + column, mask, 0)
        if operation == "softmax":
            power = tl.exp(low - tl.max(low, 0))
            result = power / tl.sum(power, 0)
        elif operation == "layer_norm":
            centred = tl.where(mask, a - tl.sum(a, 0) / columns, 0)
            result = centred * tl.rsqrt(tl.sum(centred * centred, 0) / columns + 1e-5) * b
        elif operation == "rms_norm":
            result = a * tl.rsqrt(tl.sum(a * a, 0) / columns + 1e-5) * b
        else:
            result = tl.cumsum(a, 0)
        tl.store(out + row * columns + column, result, mask)


@triton.jit
def looped_sum(x, out, columns: tl.constexpr, block: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([block], tl.float32)
    for start in range(0, columns, block):
        column = start + tl.arange(0, block)
        total += tl.load(x + row * columns + column, column < columns, 0)
    tl.store(out + row, tl.sum(total, 0))


@triton.jit
def moved(x, where, out, operation: tl.constexpr, side: tl.constexpr):
    row = tl.arange(0, side)[:, None]
    column = tl.arange(0, side)[None, :]
    if operation == "transpose":
        tl.store(out + column * side + row, tl.load(x + row * side + column))
    elif operation == "gather":
        tl.store(out + row * side + column, tl.load(x + tl.load(where + row) * side + column))
    elif operation == "flip":
        tl.store(out + row * side + column, tl.load(x + row * side + (side - 1 - column)))
    else:
        tl.atomic_add(out + tl.load(where + row) * side + column, tl.load(x + row * side + column))


@triton.jit
def dropout(x, out, block: tl.constexpr):
    index = tl.arange(0, block)
    drawn = tl.rand(7, index)
    tl.store(out + index, tl.where((drawn >= 0) & (drawn < 1), tl.load(x + index), 0))


@triton.jit
def adam(parameter, gradient, out, block: tl.constexpr):
    index = tl.arange(0, block)
    step = tl.load(gradient + index)
    mean = step * 0.1
    square = step * step * 0.001
    change = mean / 0.1 / (tl.sqrt(square / 0.001) + 1e-8)
    tl.store(out + index, tl.load(parameter + index) * 0.99 - 0.01 * change)


@triton.jit
def dequantized(x, scale, out, columns: tl.constexpr, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    mask = column < columns
    value = tl.load(x + row * columns + column, mask, 0).to(tl.float32)
    tl.store(out + row * columns + column, value * tl.load(scale + row), mask)


@triton.jit
def product(x, y, out, side: tl.constexpr, block: tl.constexpr, relu: tl.constexpr, total_type: tl.constexpr):
    row = tl.arange(0, side)[:, None]
    column = tl.arange(0, side)[None, :]
    total = tl.zeros([side, side], total_type)
    for start in range(0, 2 * block, block):
        depth = start + tl.arange(0, block)
        a = tl.load(x + row * 2 * block + depth[None, :])
        b = tl.load(y + depth[:, None] * side + column)
        total = tl.dot(a, b, total, out_dtype=total_type)
    if relu:
        total = tl.maximum(total, 0)
    tl.store(out + row * side + column, total)


@triton.jit
def attention(
    query,
    key,
    value,
    out,
    length: tl.constexpr,
    width: tl.constexpr,
    block: tl.constexpr,
    causal: tl.constexpr,
):
    row = tl.program_id(0) * block + tl.arange(0, block)
    head = tl.arange(0, width)
    q = tl.load(query + row[:, None] * width + head[None, :])
    top = tl.full([block], -float("inf"), tl.float32)
    weight = tl.zeros([block], tl.float32)
    total = tl.zeros([block, width], tl.float32)
    for start in range(0, length, block):
        other = start + tl.arange(0, block)
        k = tl.load(key + other[None, :] * width + head[:, None])
        scores = tl.dot(q, k) * 0.17677669529663687
        if causal:
            scores = tl.where(row[:, None] >= other[None, :], scores, -1e30)
        higher = tl.maximum(top, tl.max(scores, 1))
        power = tl.exp(scores - higher[:, None])
        shrunk = tl.exp(top - higher)
        v = tl.load(value + other[:, None] * width + head[None, :])
        total = tl.dot(power.to(v.dtype), v, total * shrunk[:, None])
        weight = weight * shrunk + tl.sum(power, 1)
        top = higher
    tl.store(out + row[:, None] * width + head[None, :], total / weight[:, None])


def _erf(values: Array) -> Array:
    from math import erf

    return numpy.vectorize(erf)(values)


POINTWISE: dict[str, Callable[[Array, Array], Array]] = {
    "add": lambda a, b: a + b,
    "scaled": lambda a, b: a * 2 + b,
    "relu": lambda a, b: numpy.maximum(a, 0),
    "clamp": lambda a, b: numpy.clip(a, -0.5, 0.5),
    "where": numpy.maximum,
    "gelu": lambda a, b: a * 0.5 * (1 + _erf(a * 0.7071067811865476)),
    "silu": lambda a, b: a / (1 + numpy.exp(-a)),
    "exp": lambda a, b: numpy.exp(a),
    "log": lambda a, b: numpy.log(numpy.abs(a) + 1),
    "sqrt": lambda a, b: numpy.sqrt(numpy.abs(a)),
    "rsqrt": lambda a, b: 1 / numpy.sqrt(numpy.abs(a) + 1),
    "sin": lambda a, b: numpy.sin(a),
    "cos": lambda a, b: numpy.cos(a),
    "tanh": lambda a, b: numpy.tanh(a),
    "divide": lambda a, b: a / (numpy.abs(b) + 1),
    "squares": lambda a, b: a * a + b * b,
}


def _exp_rows(a: Array) -> Array:
    return numpy.exp(a - a.max(1, keepdims=True))


ROW: dict[str, Callable[[Array, Array], Array]] = {
    "sum": lambda a, b: a.sum(1),
    "max": lambda a, b: a.max(1),
    "argmax": lambda a, b: a.argmax(1),
    "logsumexp": lambda a, b: numpy.log(_exp_rows(a).sum(1)) + a.max(1),
    "softmax": lambda a, b: _exp_rows(a) / _exp_rows(a).sum(1, keepdims=True),
    "layer_norm": lambda a, b: (
        (a - a.mean(1, keepdims=True)) / numpy.sqrt(a.var(1, keepdims=True) + 1e-5) * b
    ),
    "rms_norm": lambda a, b: a / numpy.sqrt((a * a).mean(1, keepdims=True) + 1e-5) * b,
    "cumsum": lambda a, b: a.cumsum(1),
}


def _scattered(x: Array, where: Array) -> Array:
    out = numpy.zeros((SIDE, SIDE))
    numpy.add.at(out, where, x)
    return out


MOVED: dict[str, Callable[[Array, Array], Array]] = {
    "transpose": lambda a, where: a.T,
    "gather": lambda a, where: a[where],
    "flip": lambda a, where: a[:, ::-1],
    "scatter_add": _scattered,
}


def _attention(query: Array, key: Array, value: Array, causal: bool) -> Array:
    scores = query @ key.T * 0.17677669529663687
    if causal:
        scores = numpy.where(numpy.tri(len(query), dtype=bool), scores, -1e30)
    power = _exp_rows(scores)
    return power / power.sum(1, keepdims=True) @ value


# How far off a result stored in a type may be, of numbers of about one, after sums of some hundred terms.
TOLERANCE = {"fp64": 1e-12, "fp32": 2e-5, "fp16": 5e-3, "bf16": 4e-2, "i32": 0, "i64": 0, "i8": 0}


def _pointwise(operation: str, dtype: str = "fp32") -> Kernel:
    constants = {"operation": operation, "length": LENGTH, "block": 256}
    return Kernel(
        f"pointwise/{operation}-{dtype}", pointwise, (dtype,) * 3, POINTWISE[operation],
        ((LENGTH,),) * 3, constants, 4, TOLERANCE[dtype],
    )  # fmt: skip


def _rows(operation: str) -> Kernel:
    alone = operation in ("sum", "max", "argmax", "logsumexp")
    shapes = ((ROWS, COLUMNS), (COLUMNS,), (ROWS,) if alone else (ROWS, COLUMNS))
    result = "i64" if operation == "argmax" else "fp32"
    constants = {"operation": operation, "columns": COLUMNS, "block": 256}
    return Kernel(
        f"rows/{operation}", rows, ("fp32", "fp32", result), ROW[operation], shapes, constants, ROWS, 2e-5
    )


def _moved(operation: str) -> Kernel:
    constants = {"operation": operation, "side": SIDE}
    shapes = ((SIDE, SIDE), (SIDE,), (SIDE, SIDE))
    return Kernel(f"moved/{operation}", moved, ("fp32", "i64", "fp32"), MOVED[operation], shapes, constants)


def _product(dtype: str, relu: bool = False) -> Kernel:
    whole = dtype == "i8"
    constants = {"side": SIDE, "block": 32, "relu": relu, "total_type": tl.int32 if whole else tl.float32}
    shapes = ((SIDE, 64), (64, SIDE), (SIDE, SIDE))
    types = (dtype, dtype, "i32" if whole else "fp32")
    return Kernel(
        f"products/{dtype}{'-relu' * relu}", product, types,
        lambda a, b: numpy.maximum(a @ b, 0) if relu else a @ b, shapes, constants, 1, 0 if whole else 1e-4,
    )  # fmt: skip


def _attends(dtype: str, causal: bool) -> Kernel:
    constants = {"length": 64, "width": HEAD, "block": 32, "causal": causal}
    return Kernel(
        f"attention/{dtype}{'-causal' * causal}", attention, (dtype,) * 3 + ("fp32",),
        lambda q, k, v: _attention(q, k, v, causal), ((64, HEAD),) * 4, constants, 2, TOLERANCE[dtype],
    )  # fmt: skip


KERNELS = (
    *(_pointwise(operation) for operation in POINTWISE),
    *(_pointwise("add", dtype) for dtype in ("fp64", "fp16", "bf16", "i32", "i64")),
    *(_rows(operation) for operation in ROW),
    Kernel("rows/looped_sum", looped_sum, ("fp32", "fp32"), lambda a: a.sum(1), ((ROWS, COLUMNS), (ROWS,)),
           {"columns": COLUMNS, "block": 64}, ROWS, 2e-5),
    *(_moved(operation) for operation in MOVED),
    Kernel("other/dropout", dropout, ("fp32", "fp32"), lambda a: a, ((256,), (256,)), {"block": 256}),
    Kernel("other/adam", adam, ("fp32",) * 3, lambda p, g: p * 0.99 - 0.01 * g / (numpy.abs(g) + 1e-8),
           ((256,),) * 3, {"block": 256}),
    Kernel("other/dequantized", dequantized, ("i8", "fp32", "fp32"), lambda a, s: a * s[:, None],
           ((ROWS, COLUMNS), (ROWS,), (ROWS, COLUMNS)), {"columns": COLUMNS, "block": 256}, ROWS, 2e-5),
    *(_product(dtype) for dtype in ("fp32", "fp16", "bf16", "i8")),
    _product("fp16", relu=True),
    *(_attends(dtype, causal) for dtype in ("fp16", "bf16") for causal in (False, True)),
)  # fmt: skip
