"""How far a result may be from its reference, by the family of the operation and the type of its numbers.

The error of a value is |got - reference| / (|reference| + floor * largest |reference|). For sums of many
terms (floor 1) it counts against the largest value of the result, since the terms of a small one cancel; for
functions of one value (small floor), against the value itself. What is allowed is a number of units of the
last place (epsilon) of the type. The reference is in fp64, from the inputs as the type has rounded them, so
that only the operation's own rounding counts: about 1 unit where a GPU adds up in fp32 and rounds once.
"""

from __future__ import annotations

from typing import NamedTuple

EPSILON = {"fp64": 2.0**-52, "fp32": 2.0**-23, "fp16": 2.0**-10, "bf16": 2.0**-7}
"""The distance from 1 to the next number of each type (IEEE 754; bfloat16 has 8 bits of precision)."""

TYPES = tuple(EPSILON)


class Family(NamedTuple):
    """Units of epsilon allowed in wide types (fp64, fp32) and in narrow ones (fp16, bf16), and the floor."""

    wide: float
    narrow: float
    floor: float
    why: str


FAMILIES = {
    "exact": Family(0, 0, 1, "moves, comparisons, integers: nothing is rounded"),
    "product": Family(64, 4, 1, "sums of products in another order, rounded once at the end"),
    "convolution": Family(64, 4, 1, "as products; transforms (Winograd, FFT) lose a few bits more"),
    "reduction": Family(32, 4, 1, "sums in another order"),
    "scan": Family(128, 8, 1, "one after the other: the error grows along the row"),
    "function": Family(64, 4, 2.0**-4, "a function of each value, from a device's own library"),
    "softmax": Family(64, 4, 2.0**-6, "exponentials divided by their sum"),
    "transform": Family(64, 8, 1, "FFT: about log2(n) additions a value"),
    "factorization": Family(4096, 4096, 1, "well-conditioned; the condition number counts"),
    "attention": Family(128, 8, 1, "two products and a softmax, narrow weights between them"),
    "gradient": Family(256, 16, 1, "chains of the above"),
    "filter": Family(1024, 64, 1, "recursions and resampling of some thousand samples"),
}


def allowed(family: str, type_name: str) -> float:
    """The largest error allowed, relative as told above."""
    units = FAMILIES[family].wide if type_name in ("fp64", "fp32") else FAMILIES[family].narrow
    return units * EPSILON[type_name]


def floor(family: str) -> float:
    """The part of the largest value that is added to each value's own size before dividing by it."""
    return FAMILIES[family].floor
