"""Says whether torchvision's compiled operators give right values, against references written out here."""

from __future__ import annotations

import random
import struct
import sys
import zlib

import check_lines

Image = list[list[tuple[int, int, int]]]
Plane = list[list[float]]


def loads(device: str) -> str:
    import torch
    import torchvision

    assert torchvision.extension._has_ops(), "torchvision's compiled operators did not load"
    return f"torchvision {torchvision.__version__} on torch {torch.__version__}"


def nms(device: str) -> str:
    """200 boxes, threshold 0.5; the order kept must be the same, and no overlap is near the threshold."""
    import torch
    import torchvision

    threshold = 0.5
    draw = random.Random(7)
    boxes = []
    for _ in range(200):
        left, top = draw.uniform(0, 80), draw.uniform(0, 80)
        boxes.append((left, top, left + draw.uniform(10, 40), top + draw.uniform(10, 40)))
    scores = draw.sample([step / 256 for step in range(256)], len(boxes))
    overlaps = [overlap(a, b) for i, a in enumerate(boxes) for b in boxes[:i]]
    margin = min(abs(value - threshold) for value in overlaps)
    assert margin > 1e-6, "an overlap at the threshold would make the reference ambiguous"

    kept: list[int] = []
    for i in sorted(range(len(boxes)), key=lambda i: -scores[i]):
        if all(overlap(boxes[i], boxes[j]) <= threshold for j in kept):
            kept.append(i)
    found = torchvision.ops.nms(
        torch.tensor(boxes, device=device), torch.tensor(scores, device=device), threshold
    ).tolist()
    assert found == kept, f"kept {found} where {kept} is expected"
    return f"{len(kept)} of {len(boxes)} boxes kept, the same in the same order"


def overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """Intersection over union of two boxes (left, top, right, bottom)."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    common = max(0.0, width) * max(0.0, height)
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)


def roi_align(device: str) -> str:
    """Two channels, four regions (one partly outside), 3x3 bins of 2x2 samples, half scale, aligned."""
    import torch
    import torchvision

    draw = random.Random(11)
    planes = [[[draw.uniform(-1, 1) for _ in range(16)] for _ in range(16)] for _ in range(2)]
    regions = [
        (2.0, 3.0, 21.5, 17.25),
        (0.0, 0.0, 30.0, 30.0),
        (10.1, 4.4, 12.9, 29.7),
        (24.0, 20.0, 36.0, 40.0),
    ]
    found = torchvision.ops.roi_align(
        torch.tensor([planes], device=device),
        torch.tensor([(0.0, *region) for region in regions], device=device),
        output_size=3,
        spatial_scale=0.5,
        sampling_ratio=2,
        aligned=True,
    )
    expected = [value for region in regions for plane in planes for value in pooled(plane, region)]
    return check_lines.near("roi_align", found.flatten().tolist(), expected, 1e-5)


def pooled(plane: Plane, region: tuple[float, ...], *, bins: int = 3, samples: int = 2) -> list[float]:
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


def decode_png(device: str) -> str:
    """An RGB image whose rows use each of PNG's five filters; every value must be the same."""
    import torch
    import torchvision

    draw = random.Random(13)
    image = [
        [(draw.randrange(256), draw.randrange(256), draw.randrange(256)) for _ in range(9)] for _ in range(10)
    ]
    data = torch.frombuffer(bytearray(png(image)), dtype=torch.uint8)
    found = torchvision.io.decode_png(data).permute(1, 2, 0).tolist()
    assert found == [[list(pixel) for pixel in row] for row in image], "decoded pixels differ"
    return "9x10 RGB pixels, all the same"


def png(image: Image) -> bytes:
    """An 8-bit RGB PNG; row n uses filter n modulo 5 (None, Sub, Up, Average, Paeth)."""
    rows = [[channel for pixel in row for channel in pixel] for row in image]
    packed = bytearray()
    above = [0] * len(rows[0])
    for number, row in enumerate(rows):
        packed.append(number % 5)
        for i, value in enumerate(row):
            a, b = row[i - 3] if i >= 3 else 0, above[i]
            c = above[i - 3] if i >= 3 else 0
            packed.append((value - (0, a, b, (a + b) // 2, paeth(a, b, c))[number % 5]) % 256)
        above = row
    header = struct.pack(">IIBBBBB", len(image[0]), len(image), 8, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(bytes(packed))), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, body) for kind, body in parts)


def paeth(a: int, b: int, c: int) -> int:
    """Of left, above and upper left, the one nearest to a + b - c; the first of equals."""
    return min((a, b, c), key=lambda value: abs(a + b - c - value))


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


if __name__ == "__main__":
    checks = [("vision-loads", loads), ("nms", nms), ("roi-align", roi_align), ("decode-png", decode_png)]
    sys.exit(check_lines.run(checks, cpu_only=("decode-png",)))
