"""Operations that are tried over types and shapes, each against a reference in fp64 on the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smoke.compare import Compared, compare
from smoke.model import AbsentError, Case, Context, Told, WrongError
from smoke.tolerance import TYPES, allowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Shape = tuple[Any, ...]


NAIVE_VALUES = 1 << 21
"""Inputs of more values are not given to `naive`: the CPU's own operation in fp64 is the reference."""


class Draw:
    """Inputs for an operation, drawn on the CPU in fp64, the same in every run."""

    def __init__(self, context: Context, label: str) -> None:
        self.torch, self.generator = context.torch, context.generator(label)

    def normal(self, *shape: int) -> Any:
        return self.torch.randn(*shape, generator=self.generator, dtype=self.torch.float64)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Any:
        drawn = self.torch.rand(*shape, generator=self.generator, dtype=self.torch.float64)
        return low + (high - low) * drawn

    def integers(self, low: int, high: int, *shape: int) -> Any:
        return self.torch.randint(low, high, shape, generator=self.generator)

    def mixed(self, *shape: int) -> Any:
        """Different numbers that fp16 and bf16 tell apart up to 256 of them: whole ones in mixed order."""
        count = 1
        for one in shape:
            count *= one
        order = self.torch.randperm(count, generator=self.generator)
        return (order - count // 2).to(self.torch.float64).reshape(shape)


@dataclass(frozen=True)
class Operation:
    """`run` on what `inputs` draws, over shapes and types, against `naive` on the CPU in fp64 (else `run`).

    A shape is a tuple that `inputs` understands; `larger` and `largest` are added for the sizes normal and
    large. `naive` is written from the definition, of other operations than the one on trial, so that a CPU is
    held to something else than itself; for inputs of more than `naive_values` it takes too long.
    """

    name: str
    family: str
    inputs: Callable[..., tuple[Any, ...]]
    run: Callable[..., Any]
    shapes: Sequence[Shape]
    larger: Sequence[Shape] = ()
    largest: Sequence[Shape] = ()
    naive: Callable[..., Any] | None = None
    types: Sequence[str] = TYPES
    naive_values: int = NAIVE_VALUES

    def cases(self, group: str) -> Iterator[Case]:
        """One case a type."""
        for type_name in self.types:
            yield Case(group, f"{self.name} {type_name}", _Trial(self, type_name, group))


@dataclass(frozen=True)
class _Trial:
    operation: Operation
    type_name: str
    group: str

    def __call__(self, context: Context) -> Told:
        operation = self.operation
        require_type(context, self.type_name)
        worst, where, values = -1.0, "", 0
        shapes = [
            *operation.shapes,
            *(operation.larger if context.fits("normal") else ()),
            *(operation.largest if context.fits("large") else ()),
        ]
        for shape in shapes:
            named = "x".join(str(one) for one in shape).replace(" ", "")
            found = self.one(context, shape, named)
            if found.error > worst:
                worst, where = found.error, named
            values += found.values
        tolerance = allowed(operation.family, self.type_name)
        plural = f"{len(shapes)} shapes, {values} values"
        detail = plural if operation.family == "exact" else f"{plural}, worst error {worst:.2g} at {where}"
        return Told(detail, worst, tolerance)

    def one(self, context: Context, shape: Shape, named: str) -> Any:
        torch, dtype = context.torch, context.dtype(self.type_name)
        drawn = self.operation.inputs(Draw(context, f"{self.operation.name} {named}"), *shape)

        def rounded(one: Any) -> Any:
            if isinstance(one, torch.Tensor) and one.is_complex():
                return torch.complex(rounded(one.real), rounded(one.imag))
            return one.to(dtype) if isinstance(one, torch.Tensor) and one.is_floating_point() else one

        def moved(one: Any) -> Any:
            return one.to(context.device) if isinstance(one, torch.Tensor) else one

        def widened(one: Any) -> Any:
            if isinstance(one, torch.Tensor) and one.is_complex():
                return one.to(torch.complex128)
            return one.double() if isinstance(one, torch.Tensor) and one.is_floating_point() else one

        inputs = [rounded(one) for one in drawn]
        if context.bits is not None:
            there = [moved(one) for one in inputs]
            context.bits.repeated(named, lambda: self.operation.run(*there))
            return Compared(0.0, 0.0, sum(one.numel() for one in there if isinstance(one, torch.Tensor)))
        try:
            got = self.operation.run(*[moved(one) for one in inputs])
        except WrongError as wrong:
            raise WrongError(f"{named}: {wrong}", error=wrong.error, tolerance=wrong.tolerance) from wrong
        context.wait()
        wide = [widened(one) for one in inputs]
        values = sum(one.numel() for one in wide if isinstance(one, torch.Tensor))
        operation = self.operation
        naive = operation.naive if values <= operation.naive_values else None
        reference = (naive or operation.run)(*wide)
        return compare(context, got, reference, self.operation.family, self.type_name, named)


def require_type(context: Context, type_name: str) -> None:
    """Raises AbsentError where the device has no arithmetic of that type, as torch tells."""
    if type_name in context.lacks:
        raise AbsentError(f"not served: {context.lacks[type_name]}")
    if type_name == "bf16" and context.on_gpu and not context.torch.cuda.is_bf16_supported():
        raise AbsentError("torch says that this device has no bf16")
