"""flash-attention, whichever back end it was built with, against attention written out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smoke.cases.attention import written_out
from smoke.compare import compare
from smoke.model import AbsentError, Case, Context, Told
from smoke.operation import Draw, require_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# batch, queries, keys, heads, heads of keys and values, head size, causal
SHAPES = ((1, 64, 64, 2, 2, 64, False), (2, 127, 127, 4, 4, 64, True), (1, 33, 257, 4, 2, 128, False))


def cases() -> Iterator[Case]:
    yield Case("flash-attention", "loads", loads)
    for type_name in ("fp16", "bf16"):
        yield Case("flash-attention", f"forward {type_name}", _typed(forward, type_name))
        yield Case("flash-attention", f"backward {type_name}", _typed(backward, type_name))


def imported() -> Any:
    """flash_attn. Raises AbsentError where it is not installed."""
    try:
        import flash_attn
    except ModuleNotFoundError as error:
        if error.name != "flash_attn":
            raise
        raise AbsentError("flash_attn is not installed") from None
    return flash_attn


def loads(context: Context) -> Told:
    """The package imports, and offers the function that models call."""
    found = imported()
    if not callable(found.flash_attn_func):
        raise TypeError("flash_attn_func cannot be called")
    return Told(f"flash_attn {found.__version__}")


def _typed(run: Callable[[Context, str, Any], Told], type_name: str) -> Callable[[Context], Told]:
    def case(context: Context) -> Told:
        found = imported()
        if not context.on_gpu:
            raise AbsentError("flash-attention runs on a GPU only")
        require_type(context, type_name)
        return run(context, type_name, found.flash_attn_func)

    return case


def drawn(context: Context, shape: tuple[Any, ...], type_name: str) -> list[Any]:
    batch, queries, keys, heads, key_heads, size, _ = shape
    draw = Draw(context, f"flash {shape}")
    sizes = ((batch, queries, heads, size), (batch, keys, key_heads, size), (batch, keys, key_heads, size))
    return [draw.normal(*one).to(context.dtype(type_name)) for one in sizes]


def reference(inputs: list[Any], shape: tuple[Any, ...]) -> Any:
    """The same in fp64, heads before queries and back, shared heads of keys and values repeated."""
    repeat = shape[3] // shape[4]
    query, key, value = (one.double().transpose(1, 2) for one in inputs)
    key, value = (one.repeat_interleave(repeat, 1) for one in (key, value))
    return written_out(query, key, value, shape[6]).transpose(1, 2)


def forward(context: Context, type_name: str, attend: Any) -> Told:
    worst, tolerance = 0.0, 0.0
    for shape in SHAPES:
        inputs = drawn(context, shape, type_name)
        got = attend(*(one.to(context.device) for one in inputs), causal=shape[6])
        context.wait()
        found = compare(context, got, reference(inputs, shape), "attention", type_name, str(shape))
        worst, tolerance = max(worst, found.error), found.tolerance
    return Told(f"{len(SHAPES)} shapes, worst error {worst:.2g}", worst, tolerance)


def backward(context: Context, type_name: str, attend: Any) -> Told:
    worst, tolerance = 0.0, 0.0
    for shape in SHAPES[:2]:
        inputs = drawn(context, shape, type_name)
        there = [one.to(context.device).requires_grad_() for one in inputs]
        here = [one.double().requires_grad_() for one in inputs]
        attend(*there, causal=shape[6]).sum().backward()
        reference(here, shape).sum().backward()
        context.wait()
        got, expected = tuple(one.grad for one in there), tuple(one.grad for one in here)
        found = compare(context, got, expected, "gradient", type_name, str(shape))
        worst, tolerance = max(worst, found.error), found.tolerance
    return Told(f"2 shapes, worst error {worst:.2g}", worst, tolerance)
