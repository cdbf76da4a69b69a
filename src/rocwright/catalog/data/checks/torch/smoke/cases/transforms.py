"""Fourier transforms, against the sum over all samples with Python's sines and cosines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from smoke.operation import Draw, Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smoke.model import Case

LENGTHS = ((1, 1), (2, 8), (3, 15), (2, 64), (2, 97), (1, 210), (1, 256))
LARGER = ((5, 1000), (2, 1024), (3, 1021))
LARGEST = ((4, 65_536), (2, 65_537))
TYPES = ("fp64", "fp32")
DIRECT_LIMIT = 2048
"""Longest transform that is summed directly; the reference of a longer one is the CPU's."""


def waves(length: int) -> Any:
    """exp(-2 pi i j k / n) for all j and k: each from its own angle, reduced in whole numbers."""
    import torch

    turns = [-2 * math.pi * k / length for k in range(length)]
    circle = torch.tensor([complex(math.cos(one), math.sin(one)) for one in turns], dtype=torch.complex128)
    places = torch.arange(length)
    return circle[(places[:, None] * places) % length]


def direct(x: Any) -> Any:
    import torch

    if x.shape[-1] > DIRECT_LIMIT:
        return torch.fft.fft(x)
    return (x[..., None, :] * waves(x.shape[-1])).sum(-1)


def complex_rows(draw: Draw, *shape: int) -> tuple[Any, ...]:
    import torch

    return (torch.complex(draw.normal(*shape), draw.normal(*shape)),)


def real_rows(draw: Draw, *shape: int) -> tuple[Any, ...]:
    return (draw.normal(*shape),)


def cases() -> Iterator[Case]:
    import torch

    rows = {"shapes": LENGTHS, "larger": LARGER, "largest": LARGEST, "types": TYPES}
    planes = {"shapes": ((1, 4, 4), (2, 7, 12), (1, 32, 33)), "larger": ((2, 256, 100),), "types": TYPES}
    for one in (
        Operation("fft", "transform", complex_rows, torch.fft.fft, naive=direct, **rows),
        Operation(
            "ifft",
            "transform",
            complex_rows,
            torch.fft.ifft,
            naive=lambda x: direct(x.conj()).conj() / x.shape[-1],
            **rows,
        ),
        Operation(
            "rfft",
            "transform",
            real_rows,
            torch.fft.rfft,
            naive=lambda x: direct(x)[..., : x.shape[-1] // 2 + 1],
            **rows,
        ),
        Operation(
            "irfft",
            "transform",
            real_rows,
            lambda x: torch.fft.irfft(torch.fft.rfft(x), n=x.shape[-1]),
            naive=lambda x: x,
            **rows,
        ),
        Operation(
            "fft2",
            "transform",
            complex_rows,
            torch.fft.fft2,
            naive=lambda x: direct(direct(x).transpose(-1, -2)).transpose(-1, -2),
            **planes,
        ),
        Operation(
            "stft",
            "transform",
            real_rows,
            lambda x: torch.stft(
                x,
                64,
                16,
                window=torch.ones(64, dtype=x.dtype, device=x.device),
                center=False,
                return_complex=True,
            ),
            naive=lambda x: direct(x.unfold(-1, 64, 16))[..., :33].transpose(-1, -2),
            shapes=((1, 64), (2, 500)),
            larger=((3, 16_000),),
            types=TYPES,
        ),
    ):
        yield from one.cases("transforms")
