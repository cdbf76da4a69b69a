"""Scaled dot-product attention by each kernel built in, against products and a softmax written out."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from smoke.cases.products import plain
from smoke.explain import tail
from smoke.model import AbsentError, Case, Context, Told
from smoke.operation import Draw, Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

# batch, heads, queries, keys, head size, causal
SHAPES = ((1, 1, 16, 16, 32, 0), (2, 3, 33, 33, 64, 1), (1, 2, 65, 129, 64, 0), (2, 2, 128, 128, 128, 1))
LARGER = ((2, 8, 513, 513, 64, 1), (1, 4, 1024, 1024, 128, 0), (4, 16, 1, 777, 64, 0))
EVERY = 1 << 62
"""The reference is always written out: torch's own, on the CPU, would be held to the kernel on trial."""

LARGEST = ((1, 8, 4096, 4096, 128, 1),)


def inputs(
    draw: Draw, batch: int, heads: int, queries: int, keys: int, size: int, causal: int
) -> tuple[Any, ...]:
    return (
        draw.normal(batch, heads, queries, size),
        draw.normal(batch, heads, keys, size),
        draw.normal(batch, heads, keys, size),
        bool(causal),
    )


def written_out(query: Any, key: Any, value: Any, causal: bool) -> Any:
    """softmax(Q K^T / sqrt(d)) V, a key after its query left out where causal."""
    import torch

    flat = [one.reshape(-1, *one.shape[-2:]) for one in (query, key, value)]
    scores = plain(flat[0], flat[1].transpose(1, 2)) / math.sqrt(query.shape[-1])
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = weights / weights.sum(-1, keepdim=True)
    return plain(weights, flat[2]).reshape(*query.shape[:-1], value.shape[-1])


class _Kernel:
    """A case of one kernel; where torch says that it is not available for the inputs, it is absent."""

    def __init__(self, case: Case, backend: Any) -> None:
        self.case, self.backend = case, backend

    def __call__(self, context: Context) -> Told:
        from torch.nn.attention import sdpa_kernel

        with warnings.catch_warnings(record=True) as said, sdpa_kernel([self.backend]):
            warnings.simplefilter("always")
            try:
                return self.case.run(context)
            except RuntimeError as error:
                text = str(error)
                if "No available kernel" in text or "No viable backend" in text:
                    why = [str(one.message).partition("(Triggered")[0].strip() for one in said]
                    raise AbsentError(
                        f"torch has no such kernel for this device: {tail(' '.join(why) or text, 1, 300)}"
                    ) from None
                raise


def cases() -> Iterator[Case]:
    from torch.nn.attention import SDPBackend
    from torch.nn.functional import scaled_dot_product_attention

    kernels = {
        "math": (SDPBackend.MATH, ("fp64", "fp32", "fp16", "bf16")),
        "flash": (SDPBackend.FLASH_ATTENTION, ("fp32", "fp16", "bf16")),
        "efficient": (SDPBackend.EFFICIENT_ATTENTION, ("fp32", "fp16", "bf16")),
        "cudnn": (getattr(SDPBackend, "CUDNN_ATTENTION", None), ("fp16", "bf16")),
    }
    for name, (backend, types) in kernels.items():
        if backend is None:
            continue
        one = Operation(
            f"{name}-kernel",
            "attention",
            inputs,
            lambda q, k, v, causal: scaled_dot_product_attention(q, k, v, is_causal=causal),
            shapes=SHAPES,
            larger=LARGER,
            largest=LARGEST,
            naive=written_out,
            naive_values=EVERY,
            types=types,
        )
        for case in one.cases("attention"):
            yield Case(case.group, case.name, _Kernel(case, backend))
