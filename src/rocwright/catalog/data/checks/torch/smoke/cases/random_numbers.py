"""Random generators: the distribution they promise, the same numbers for a seed, others for another."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from smoke.model import Case, Context, Told, WrongError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COUNT = 100_000
SIGMAS = 6.0
"""A mean further from what it should be than so many of its own standard deviations is no accident."""


def cases() -> Iterator[Case]:
    import torch

    options = {"dtype": torch.float32}
    for name, make, mean, deviation in (
        ("uniform", lambda d, g: torch.rand(COUNT, device=d, generator=g, **options), 0.5, math.sqrt(1 / 12)),
        ("normal", lambda d, g: torch.randn(COUNT, device=d, generator=g, **options), 0.0, 1.0),
        (
            "exponential",
            lambda d, g: torch.empty(COUNT, device=d, **options).exponential_(2.0, generator=g),
            0.5,
            0.5,
        ),
        (
            "bernoulli",
            lambda d, g: torch.empty(COUNT, device=d, **options).bernoulli_(0.3, generator=g),
            0.3,
            0.21**0.5,
        ),
        (
            "integers",
            lambda d, g: torch.randint(0, 101, (COUNT,), device=d, generator=g).double(),
            50.0,
            850**0.5,
        ),
    ):
        yield Case("random", name, distribution(make, mean, deviation))
    yield Case("random", "permutation", permutation)
    yield Case("random", "dropout", dropout)
    yield Case("random", "multinomial", multinomial)


def distribution(make: Callable[[Any, Any], Any], mean: float, deviation: float) -> Callable[[Context], Told]:
    def run(context: Context) -> Told:
        def drawn(seed: int) -> Any:
            return (
                make(context.device, context.torch.Generator(context.device).manual_seed(seed)).cpu().double()
            )

        first, again, other = drawn(1), drawn(1), drawn(2)
        context.note("drawn", (first, other))
        if not context.torch.equal(first, again):
            raise WrongError("the same seed gave other numbers")
        if context.torch.equal(first, other):
            raise WrongError("another seed gave the same numbers")
        off = abs(float(first.mean()) - mean) / (deviation / COUNT**0.5)
        spread = float(first.std()) / deviation
        halves = float(((first[1:] - mean) * (first[:-1] - mean)).mean()) / deviation**2 * COUNT**0.5
        if not (off <= SIGMAS and abs(spread - 1) <= 0.05 and abs(halves) <= SIGMAS):
            raise WrongError(
                f"the mean is {off:.1f} sigmas off, the spread {spread:.3f} of what it should be, neighbours "
                f"go together by {halves:.1f} sigmas"
            )
        return Told(
            f"{COUNT}: mean {off:.1f} sigmas off, spread {spread:.3f}, neighbours {halves:+.1f} sigmas"
        )

    return run


def permutation(context: Context) -> Told:
    for count in (1, 100, 70_001):
        found = context.torch.randperm(count, device=context.device)
        context.note(f"{count}", found)
        if found.sort().values.tolist() != list(range(count)):
            raise WrongError(f"randperm({count}) is no permutation")
    return Told("each of up to 70001 places once")


def dropout(context: Context) -> Told:
    kept = context.torch.nn.functional.dropout(context.torch.ones(COUNT, device=context.device), 0.25).cpu()
    context.note("kept", kept)
    share = float((kept != 0).double().mean())
    if abs(share - 0.75) > SIGMAS * (0.1875 / COUNT) ** 0.5 or not set(kept.tolist()) <= {
        0.0,
        kept.max().item(),
    }:
        raise WrongError(f"{share:.4f} kept where 0.75 is expected, values {sorted(set(kept.tolist()))[:4]}")
    return Told(f"{share:.4f} kept where 0.75 is expected")


def multinomial(context: Context) -> Told:
    weights = context.torch.tensor([1.0, 0.0, 3.0, 4.0], device=context.device)
    places = context.torch.multinomial(weights, COUNT, replacement=True)
    context.note("places", places)
    drawn = places.bincount(minlength=4).tolist()
    for count, share in zip(drawn, (0.125, 0.0, 0.375, 0.5), strict=False):
        if abs(count / COUNT - share) > SIGMAS * (share * (1 - share) / COUNT) ** 0.5:
            raise WrongError(f"drawn {drawn} times of {COUNT} for weights 1, 0, 3 and 4")
    return Told(f"drawn {drawn} times for weights 1, 0, 3 and 4")
