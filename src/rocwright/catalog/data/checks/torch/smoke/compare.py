"""A result against its reference: the worst error, and the first value that is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from smoke.model import Context, WrongError
from smoke.tolerance import allowed, floor


@dataclass(frozen=True)
class Compared:
    """The worst error over `values` values, relative as smoke.tolerance tells."""

    error: float
    tolerance: float
    values: int


def compare(context: Context, got: Any, reference: Any, family: str, type_name: str, what: str) -> Compared:
    """Compare a tensor, or several, of the device with the CPU's. Raises WrongError at what differs."""
    if context.bits is not None:
        context.note(what, got)
        return Compared(0.0, 0.0, 0)
    if isinstance(got, (tuple, list)):
        if len(got) != len(reference):
            raise WrongError(f"{what}: {len(got)} results where {len(reference)} are expected")
        parts = [
            compare(context, one, other, family, type_name, f"{what}, result {place + 1}" if place else what)
            for place, (one, other) in enumerate(zip(got, reference, strict=False))
        ]
        return Compared(max(p.error for p in parts), parts[0].tolerance, sum(p.values for p in parts))
    torch = context.torch
    if got.device.type != context.device.type:
        raise WrongError(f"{what}: the result is on {got.device}, not on {context.device}")
    got, reference = got.detach().cpu(), reference.detach().cpu()
    if got.shape != reference.shape:
        raise WrongError(f"{what}: shape {tuple(got.shape)} where {tuple(reference.shape)} is expected")
    if not (got.is_floating_point() or got.is_complex()):
        return _same(torch, got, reference, what)
    wide = torch.complex128 if reference.is_complex() else torch.float64
    # what is too large for the type is rightly infinite in it
    reference = torch.where(
        torch.isfinite(reference.to(got.dtype)), reference.to(wide), reference.to(got.dtype).to(wide)
    )
    return _near(torch, got.to(wide), reference, (family, type_name), what)


def _same(torch: Any, got: Any, reference: Any, what: str) -> Compared:
    if got.dtype == torch.bool or reference.dtype == torch.bool:
        got, reference = got.to(torch.int8), reference.to(torch.int8)
    wrong = got != reference
    if bool(wrong.any()):
        raise WrongError(_told_wrong(torch, wrong, got, reference, what), error=float("inf"), tolerance=0.0)
    return Compared(0.0, 0.0, got.numel())


def _near(torch: Any, got: Any, reference: Any, kind: tuple[str, str], what: str) -> Compared:
    tolerance = allowed(*kind)
    finite = torch.isfinite(reference)
    size = torch.where(finite, reference.abs(), 0.0)
    largest = float(size.max()) if size.numel() else 0.0
    scale = size + floor(kind[0]) * (largest or 1.0)
    error = torch.where(finite, (got - reference).abs() / scale, 0.0)
    # where the reference is infinite or no number, the result must be the same
    same = (got == reference) | (torch.isnan(got) & torch.isnan(reference))
    error = torch.where(finite & torch.isfinite(got) | same, error, float("inf"))
    wrong = ~(error <= tolerance)
    worst = float(error.max()) if error.numel() else 0.0
    if bool(wrong.any()):
        told = _told_wrong(torch, wrong, got, reference, what)
        raise WrongError(
            f"{told}; worst error {worst:.2g}, {tolerance:.2g} allowed", error=worst, tolerance=tolerance
        )
    return Compared(worst, tolerance, got.numel())


def _told_wrong(torch: Any, wrong: Any, got: Any, reference: Any, what: str) -> str:
    places = wrong.nonzero()
    first = tuple(int(one) for one in places[0])
    share = f"{len(places)} of {wrong.numel()} values wrong"
    numbers = f"{got[first].item():.9g} where {reference[first].item():.9g} is expected"
    lost = int(torch.isnan(got).sum()) if got.is_floating_point() or got.is_complex() else 0
    return f"{what}: {share}, first at {list(first)}: {numbers}" + (f"; {lost} not a number" if lost else "")
