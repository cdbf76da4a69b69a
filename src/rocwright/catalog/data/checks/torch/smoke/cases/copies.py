"""Copies between the host and the device, of many sizes and layouts: every byte must be the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smoke.model import AbsentError, Case, Context, Told, WrongError

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (0, 1, 3, 255, 256, 257, 4095, 4096, 4097, 65536, 65537, 1 << 20, (1 << 20) + 1)
LARGER = ((1 << 24) + 3, 1 << 26)
LARGEST = (1 << 30, (1 << 31) + 5)
"""Bytes; the edges of pages, and of a 32-bit count."""


def cases() -> Iterator[Case]:
    for run in (there_and_back, on_device, strided, pinned, many_at_once, fills):
        yield Case("copies", run.__name__.replace("_", "-"), run)


def sizes(context: Context) -> tuple[int, ...]:
    return SIZES + (LARGER if context.fits("normal") else ()) + (LARGEST if context.fits("large") else ())


def drawn(context: Context, count: int) -> Any:
    return context.torch.randint(
        0, 256, (count,), generator=context.generator(f"copy {count}"), dtype=context.torch.uint8
    )


def same(context: Context, got: Any, expected: Any, what: str) -> None:
    """Raises WrongError with the first byte that differs."""
    context.note(what, got)
    if not context.torch.equal(got, expected):
        place = int((got != expected).flatten().nonzero()[0])
        raise WrongError(f"{what}: value {place} of {expected.numel()} differs")


def there_and_back(context: Context) -> Told:
    for count in sizes(context):
        data = drawn(context, count)
        same(context, data.to(context.device, copy=True).cpu(), data, f"{count} bytes")
    return Told(f"{len(sizes(context))} sizes up to {max(sizes(context))} bytes")


def on_device(context: Context) -> Told:
    for count in sizes(context):
        data = drawn(context, count)
        same(context, data.to(context.device).clone().cpu(), data, f"{count} bytes cloned")
    return Told(f"{len(sizes(context))} sizes cloned on the device")


def strided(context: Context) -> Told:
    data = drawn(context, 96 * 130 * 7).reshape(96, 130, 7)
    moved = data.to(context.device)
    same(context, moved.permute(2, 0, 1).contiguous().cpu(), data.permute(2, 0, 1).contiguous(), "permuted")
    same(context, moved[::3, 1::2].cpu(), data[::3, 1::2], "every third, every second")
    same(context, moved.transpose(0, 1).cpu(), data.transpose(0, 1), "transposed")
    same(context, moved.flip(0, 2).cpu(), data.flip(0, 2), "flipped")
    target = context.torch.zeros_like(moved)
    target[1::2] = moved[::2]
    same(context, target[1::2].cpu(), data[::2], "into every second row")
    return Told("permuted, strided, transposed and flipped views")


def pinned(context: Context) -> Told:
    if not context.on_gpu:
        raise AbsentError("memory is pinned for a GPU only")
    for count in sizes(context)[1:]:
        data = drawn(context, count).pin_memory()
        there = data.to(context.device, non_blocking=True)
        back = context.torch.empty(count, dtype=data.dtype, pin_memory=True)
        back.copy_(there, non_blocking=True)
        context.wait()
        same(context, back, data, f"{count} pinned bytes")
    return Told(f"{len(sizes(context)) - 1} sizes through pinned memory, without waiting between")


def many_at_once(context: Context) -> Told:
    data = [drawn(context, 1000 + 37 * one) for one in range(200)]
    moved = [one.to(context.device, non_blocking=True) for one in data]
    joined = context.torch.cat(moved)
    same(context, joined.cpu(), context.torch.cat(data), "200 pieces joined")
    for place, (one, other) in enumerate(zip(joined.split([len(one) for one in data]), data, strict=False)):
        same(context, one.cpu(), other, f"piece {place}")
    return Told("200 pieces there, joined, split and back")


def fills(context: Context) -> Told:
    torch = context.torch
    for count in sizes(context)[1:]:
        if (
            int(torch.full((count,), 3, dtype=torch.uint8, device=context.device).sum(dtype=torch.int64))
            != 3 * count
        ):
            raise WrongError(f"{count} bytes filled with 3 do not add up to {3 * count}")
    whole = torch.arange(100_003, device=context.device)
    same(context, whole.cpu(), torch.arange(100_003), "arange")
    return Told(f"{len(sizes(context)) - 1} sizes filled and added up")
