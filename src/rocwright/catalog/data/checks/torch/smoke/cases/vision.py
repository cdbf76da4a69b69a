"""torchvision's compiled operators, and its image work, against references written out here."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

from smoke.cases import png
from smoke.cases.convolutions import naive as convolution
from smoke.cases.registered import registered_for_gpus
from smoke.compare import compare
from smoke.model import AbsentError, Case, Context, Told, WrongError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Plane = list[list[float]]
REGIONS = ((2.0, 3.0, 21.5, 17.25), (0.0, 0.0, 30.0, 30.0), (10.1, 4.4, 12.9, 29.7), (24.0, 20.0, 36.0, 40.0))
"""Left, top, right, bottom, in an image of 32 by 32; the last reaches beyond it."""


def cases() -> Iterator[Case]:
    for run in (loads, on_gpus, nms, roi_align, roi_pool, deform_conv2d, resize, decode_png):
        yield Case("vision", run.__name__.replace("_", "-"), run)


def loads(context: Context) -> Told:
    """torchvision imports, with its compiled operators, and they are there for the device."""
    torchvision = imported()
    if not torchvision.extension._has_ops():
        raise WrongError("torchvision's compiled operators did not load")
    return Told(f"torchvision {torchvision.__version__} on torch {context.torch.__version__}")


def on_gpus(context: Context) -> Told:
    """Each operator that has code for the CPU has some for GPUs too, where torch was built for these.

    It needs no GPU: it reads which code is registered. HIP's goes under the name of CUDA's.
    """
    imported()
    return registered_for_gpus(context, "torchvision")


def imported() -> Any:
    """torchvision. Raises AbsentError where it is not installed."""
    try:
        import torchvision
    except ModuleNotFoundError as error:
        if error.name != "torchvision":
            raise
        raise AbsentError("torchvision is not installed") from None
    return torchvision


def near(context: Context, got: Any, expected: Sequence[float], family: str, what: str) -> Told:
    """Compare the values of a tensor in fp32 with a list."""
    reference = context.torch.tensor(expected, dtype=context.torch.float64)
    found = compare(context, got.flatten(), reference, family, "fp32", what)
    return Told(f"{found.values} values, worst error {found.error:.2g}", found.error, found.tolerance)


def nms(context: Context) -> Told:
    """Boxes at a threshold of 0.5; the order kept must be the same, and no overlap is near the threshold."""
    torchvision, threshold = imported(), 0.5
    told = []
    for count in (1, 63, 64, 65, 200):
        draw = random.Random(7 + count)
        boxes = []
        for _ in range(count):
            left, top = draw.uniform(0, 80), draw.uniform(0, 80)
            boxes.append((left, top, left + draw.uniform(10, 40), top + draw.uniform(10, 40)))
        scores = draw.sample([step / 256 for step in range(256)], count)
        margin = min(
            (abs(overlap(a, b) - threshold) for i, a in enumerate(boxes) for b in boxes[:i]), default=1
        )
        if margin < 1e-6:
            raise AbsentError("an overlap at the threshold would make the reference ambiguous")
        kept: list[int] = []
        for i in sorted(range(count), key=lambda i: -scores[i]):
            if all(overlap(boxes[i], boxes[j]) <= threshold for j in kept):
                kept.append(i)
        tensors = (
            context.torch.tensor(boxes, device=context.device),
            context.torch.tensor(scores, device=context.device),
        )
        found = torchvision.ops.nms(*tensors, threshold).tolist()
        if found != kept:
            raise WrongError(f"of {count} boxes {found} kept where {kept} is expected")
        told.append(f"{len(kept)} of {count}")
    return Told(f"boxes kept: {', '.join(told)}")


def overlap(a: Sequence[float], b: Sequence[float]) -> float:
    """Intersection over union of two boxes (left, top, right, bottom)."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    common = max(0.0, width) * max(0.0, height)
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)


def planes_and_regions(context: Context, seed: int) -> tuple[list[Plane], Any, Any]:
    """Two planes of 16 by 16, the same as a tensor, and the regions as torchvision takes them."""
    draw = random.Random(seed)
    planes = [[[draw.uniform(-1, 1) for _ in range(16)] for _ in range(16)] for _ in range(2)]
    tensor = context.torch.tensor([planes], device=context.device)
    return planes, tensor, context.torch.tensor([(0.0, *one) for one in REGIONS], device=context.device)


def roi_align(context: Context) -> Told:
    """Two channels, four regions (one partly outside), 3x3 bins of 2x2 samples, half scale, aligned."""
    ops = imported().ops
    planes, tensor, regions = planes_and_regions(context, 11)
    found = ops.roi_align(tensor, regions, output_size=3, spatial_scale=0.5, sampling_ratio=2, aligned=True)
    expected = [value for region in REGIONS for plane in planes for value in aligned(plane, region)]
    return near(context, found, expected, "filter", "roi_align")


def aligned(plane: Plane, region: Sequence[float], *, bins: int = 3, samples: int = 2) -> list[float]:
    """Mean of bilinear samples in each bin, row by row; coordinates at half scale, pixel centres at 0.5."""
    left, top, right, bottom = (0.5 * edge - 0.5 for edge in region)
    step_x, step_y = (right - left) / bins / samples, (bottom - top) / bins / samples
    means = []
    for row in range(bins):
        for column in range(bins):
            points = [
                (top + (row * samples + i + 0.5) * step_y, left + (column * samples + j + 0.5) * step_x)
                for i in range(samples)
                for j in range(samples)
            ]
            means.append(sum(bilinear(plane, y, x) for y, x in points) / len(points))
    return means


def bilinear(plane: Plane, y: float, x: float) -> float:
    """The plane between its pixels; its edge goes on for one pixel, and beyond that it is 0."""
    height, width = len(plane), len(plane[0])
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    y0, x0 = min(int(y), height - 2), min(int(x), width - 2)
    dy, dx = y - y0, x - x0
    upper = plane[y0][x0] * (1 - dx) + plane[y0][x0 + 1] * dx
    lower = plane[y0 + 1][x0] * (1 - dx) + plane[y0 + 1][x0 + 1] * dx
    return upper * (1 - dy) + lower * dy


def roi_pool(context: Context) -> Told:
    """The largest value of each of 3x3 bins; edges at half scale, rounded, bins from floor to ceiling."""
    ops = imported().ops
    planes, tensor, regions = planes_and_regions(context, 13)
    found = ops.roi_pool(tensor, regions, output_size=3, spatial_scale=0.5)
    expected = [value for region in REGIONS for plane in planes for value in pooled(plane, region)]
    return near(context, found, expected, "function", "roi_pool")


def pooled(plane: Plane, region: Sequence[float], *, bins: int = 3) -> list[float]:
    left, top, right, bottom = (math.floor(edge * 0.5 + 0.5) for edge in region)
    width, height = max(right - left + 1, 1), max(bottom - top + 1, 1)
    values = []
    for row in range(bins):
        for column in range(bins):
            rows = range(top + row * height // bins, top - (-(row + 1) * height // bins))
            columns = range(left + column * width // bins, left - (-(column + 1) * width // bins))
            inside = [plane[y][x] for y in rows for x in columns if 0 <= y < 16 and 0 <= x < 16]
            values.append(max(inside, default=0.0))
    return values


def deform_conv2d(context: Context) -> Told:
    """Offsets of whole pixels shift what the kernel sees; without offsets it is a convolution."""
    torch, ops = context.torch, imported().ops
    drawn = torch.Generator().manual_seed(17)
    image, weight = (torch.randn(*shape, generator=drawn) for shape in ((2, 4, 9, 11), (6, 4, 3, 3)))
    bias = torch.randn(6, generator=drawn)
    there = [one.to(context.device) for one in (image, weight, bias)]
    still = torch.zeros(2, 18, 9, 11, device=context.device)
    found = ops.deform_conv2d(there[0], still, there[1], there[2], padding=1)
    expected = convolution(image.double(), weight.double(), bias.double(), (1, 1, 1, 1))
    told = near(context, found, expected.flatten().tolist(), "filter", "without offsets")
    # every place one pixel lower: the image one pixel higher, a row of nothing under it
    still[:, 0::2] = 1
    lowered = torch.cat([image[:, :, 1:], torch.zeros(2, 4, 1, 11)], 2).double()
    expected = convolution(lowered, weight.double(), bias.double(), (1, 1, 1, 1))[:, :, 1:-1]
    found = ops.deform_conv2d(there[0], still, there[1], there[2], padding=1)[:, :, 1:-1]
    near(context, found, expected.flatten().tolist(), "filter", "one pixel lower")
    return told


def resize(context: Context) -> Told:
    """Bilinear to twice and to an odd size, without antialiasing: values between the nearest pixels."""
    functional = __import__("torchvision.transforms.v2.functional", fromlist=["resize"])
    imported()
    draw = random.Random(19)
    plane = [[draw.uniform(0, 1) for _ in range(12)] for _ in range(10)]
    tensor = context.torch.tensor([plane], device=context.device)
    told = Told("")
    for height, width in ((20, 24), (7, 31)):
        expected = [
            bilinear(
                plane,
                min(max((row + 0.5) * 10 / height - 0.5, 0), 9),
                min(max((column + 0.5) * 12 / width - 0.5, 0), 11),
            )
            for row in range(height)
            for column in range(width)
        ]
        found = functional.resize(tensor, [height, width], antialias=False)
        told = near(context, found, expected, "filter", f"to {height}x{width}")
    return told


def decode_png(context: Context) -> Told:
    """An RGB image whose rows use each of PNG's five filters; every value must be the same."""
    torchvision = imported()
    draw = random.Random(13)
    image = [
        [(draw.randrange(256), draw.randrange(256), draw.randrange(256)) for _ in range(9)] for _ in range(10)
    ]
    data = context.torch.frombuffer(bytearray(png.encode(image)), dtype=context.torch.uint8)
    found = torchvision.io.decode_png(data).permute(1, 2, 0).tolist()
    if found != [[list(pixel) for pixel in row] for row in image]:
        raise WrongError("decoded pixels differ")
    return Told("9x10 RGB pixels on the CPU, all the same")
