"""Convolution in one, two and three dimensions and its transpose, against sums over the kernel's places."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from smoke.operation import Draw, Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smoke.model import Case

# batch, channels in, channels out, size of the image, of the kernel, stride, padding, dilation, groups
ONE = ((1, 1, 1, 16, 3, 1, 0, 1, 1), (2, 6, 9, 65, 5, 2, 2, 1, 3), (3, 8, 8, 33, 3, 1, 2, 2, 8))
TWO = (
    (1, 1, 1, 8, 3, 1, 0, 1, 1),
    (2, 16, 32, 17, 3, 1, 1, 1, 1),
    (2, 16, 16, 16, 1, 1, 0, 1, 1),
    (1, 6, 12, 19, 5, 2, 2, 1, 2),
    (2, 8, 8, 21, 3, 1, 2, 2, 8),
    (1, 3, 16, 31, 7, 2, 3, 1, 1),
    (1, 8, 4, 11, 2, 3, 0, 1, 1),
)
LARGER_TWO = ((4, 64, 64, 56, 3, 1, 1, 1, 1), (2, 3, 64, 112, 7, 2, 3, 1, 1), (2, 96, 96, 28, 5, 1, 2, 1, 96))
LARGEST_TWO = ((16, 256, 256, 28, 3, 1, 1, 1, 1),)
THREE = ((1, 2, 3, 6, 3, 1, 1, 1, 1), (1, 4, 4, 7, 2, 2, 0, 1, 2), (1, 3, 5, 9, 3, 1, 2, 2, 1))
LARGER_THREE = ((1, 16, 16, 16, 3, 1, 1, 1, 1),)


def drawn(dimensions: int, *, transposed: bool) -> Any:
    """Inputs for a shape: the image, the kernel, the bias, and the numbers that go with them."""

    def inputs(draw: Draw, *shape: int) -> tuple[Any, ...]:
        batch, there, out, image, kernel, stride, padding, dilation, groups = shape
        places = (kernel,) * dimensions
        weight = (there, out // groups, *places) if transposed else (out, there // groups, *places)
        spread = (there / groups * kernel**dimensions) ** 0.5
        return (
            draw.normal(batch, there, *(image + one for one in range(dimensions))),
            draw.normal(*weight) / spread,
            draw.normal(out),
            (stride, padding, dilation, groups),
        )

    return inputs


def naive(image: Any, weight: Any, bias: Any, numbers: tuple[int, ...]) -> Any:
    """For each place of the kernel: the image, shifted and strided, times the weights of that place."""
    stride, padding, dilation, groups = numbers
    dimensions = image.dim() - 2
    kernel = weight.shape[2:]
    padded = image.new_zeros(*image.shape[:2], *(one + 2 * padding for one in image.shape[2:]))
    inside = tuple(slice(padding, padding + one) for one in image.shape[2:])
    padded[(slice(None), slice(None), *inside)] = image
    out = [
        (one - dilation * (k - 1) - 1) // stride + 1 for one, k in zip(padded.shape[2:], kernel, strict=False)
    ]
    total = image.new_zeros(image.shape[0], weight.shape[0], *out) + bias.reshape(-1, *(1,) * dimensions)
    each_in, each_out = image.shape[1] // groups, weight.shape[0] // groups
    for place in product(*(range(one) for one in kernel)):
        cut = tuple(
            slice(at * dilation, at * dilation + stride * (count - 1) + 1, stride)
            for at, count in zip(place, out, strict=False)
        )
        for group, channel in product(range(groups), range(each_in)):
            seen = padded[(slice(None), group * each_in + channel, *cut)]
            mine = slice(group * each_out, (group + 1) * each_out)
            factor = weight[(mine, channel, *place)].reshape(1, -1, *(1,) * dimensions)
            total[:, mine] += factor * seen[:, None]
    return total


def naive_transposed(image: Any, weight: Any, bias: Any, numbers: tuple[int, ...]) -> Any:
    """Each value of the image, times the kernel, added where the kernel's places fall."""
    stride, padding, dilation, groups = numbers
    dimensions, kernel = image.dim() - 2, weight.shape[2:]
    each_in, each_out = image.shape[1] // groups, weight.shape[1]
    whole = [
        (one - 1) * stride + dilation * (k - 1) + 1 for one, k in zip(image.shape[2:], kernel, strict=False)
    ]
    total = image.new_zeros(image.shape[0], groups * each_out, *whole)
    for place in product(*(range(one) for one in kernel)):
        cut = tuple(
            slice(at * dilation, at * dilation + stride * (count - 1) + 1, stride)
            for at, count in zip(place, image.shape[2:], strict=False)
        )
        for group, channel in product(range(groups), range(each_in)):
            mine = slice(group * each_out, (group + 1) * each_out)
            factor = weight[(group * each_in + channel, slice(None), *place)].reshape(
                1, -1, *(1,) * dimensions
            )
            total[(slice(None), mine, *cut)] += factor * image[:, group * each_in + channel][:, None]
    inside = tuple(slice(padding, one - padding) for one in whole)
    return total[(slice(None), slice(None), *inside)] + bias.reshape(-1, *(1,) * dimensions)


def run(function: Any) -> Any:
    """The library's convolution, called with the numbers of a shape."""

    def call(image: Any, weight: Any, bias: Any, numbers: tuple[int, ...]) -> Any:
        stride, padding, dilation, groups = numbers
        return function(image, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)

    return call


def cases() -> Iterator[Case]:
    from torch.nn import functional

    shapes = {1: (ONE, (), ()), 2: (TWO, LARGER_TWO, LARGEST_TWO), 3: (THREE, LARGER_THREE, ())}
    for dimensions, (small, larger, largest) in shapes.items():
        for transposed in (False, True):
            name = f"conv-transpose{dimensions}d" if transposed else f"conv{dimensions}d"
            # a stride may skip places of a transpose's result: then nothing there is added up
            one = Operation(
                name,
                "convolution",
                drawn(dimensions, transposed=transposed),
                run(getattr(functional, name.replace("-", "_"))),
                shapes=small,
                larger=larger,
                largest=() if transposed else largest,
                naive=naive_transposed if transposed else naive,
            )
            yield from one.cases("convolutions")
    last = Operation(
        "conv2d-channels-last",
        "convolution",
        drawn(2, transposed=False),
        lambda image, weight, bias, numbers: run(functional.conv2d)(
            image.contiguous(memory_format=_channels_last()),
            weight.contiguous(memory_format=_channels_last()),
            bias,
            numbers,
        ),
        shapes=TWO[1:4],
        larger=LARGER_TWO,
        naive=naive,
    )
    yield from last.cases("convolutions")


def _channels_last() -> Any:
    import torch

    return torch.channels_last
