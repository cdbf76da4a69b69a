"""torch.compile: the compiled function gives what the plain one gives, forwards and backwards."""

from __future__ import annotations

import importlib.util
import shutil
from typing import TYPE_CHECKING, Any

from smoke.model import AbsentError, Case, Context, Told
from smoke.operation import Draw, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def pointwise(x: Any, y: Any) -> Any:
    return (x * y.sigmoid() + x.sin()).relu() - 0.5 * y


def reduced(x: Any, y: Any) -> Any:
    return (x + y).softmax(-1).sum(0) + x.amax(0)


def multiplied(x: Any, y: Any) -> Any:
    return (x @ y.t()).tanh().mean(-1)


def cases() -> Iterator[Case]:
    for function in (pointwise, reduced, multiplied):
        one = Operation(
            function.__name__,
            "gradient",
            lambda draw, rows, columns: (draw.normal(rows, columns), draw.normal(rows, columns)),
            compiled(function),
            shapes=((33, 65),),
            larger=((128, 1000),),
            naive=function,
            types=("fp32",),
        )
        for case in one.cases("compile"):
            yield Case(case.group, case.name, _Compiled(case))
    yield Case("compile", "backward fp32", _Compiled(Case("compile", "backward fp32", backward)))


class _Compiled:
    """A case that needs a compiler: Triton for a GPU, a C++ compiler for the CPU."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def __call__(self, context: Context) -> Told:
        if context.on_gpu and importlib.util.find_spec("triton") is None:
            raise AbsentError("triton is not installed")
        if not context.on_gpu and not context.fits("normal"):
            raise AbsentError("for the CPU it calls a C++ compiler, which takes long: from size normal on")
        if not context.on_gpu and not (shutil.which("c++") or shutil.which("g++")):
            raise AbsentError("no C++ compiler, which torch.compile needs for the CPU")
        return self.case.run(context)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*inputs: Any) -> Any:
        import torch

        torch._dynamo.reset()
        return torch.compile(function, dynamic=False)(*inputs)

    return run


def backward(context: Context) -> Told:
    """The gradients of a compiled function, against the plain function's on the CPU in fp64."""
    from smoke.compare import compare

    draw = Draw(context, "compiled backward")
    drawn = [draw.normal(17, 33).to(context.torch.float32) for _ in range(2)]

    def gradients(function: Any, inputs: list[Any]) -> tuple[Any, ...]:
        leaves = [one.detach().clone().requires_grad_() for one in inputs]
        function(*leaves).square().sum().backward()
        return tuple(one.grad for one in leaves)

    context.torch._dynamo.reset()
    got = gradients(context.torch.compile(pointwise), [one.to(context.device) for one in drawn])
    expected = gradients(pointwise, [one.double() for one in drawn])
    found = compare(context, got, expected, "gradient", "fp32", "17x33")
    return Told(f"{found.values} values, worst error {found.error:.2g}", found.error, found.tolerance)
