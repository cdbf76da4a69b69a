"""Measures torch on a device: `python3 torch_speed.py --runs 5 --device cuda`. Needs torch and nothing else.

Prints "device: NAME", then for each run, in a process of its own:

    start: SECONDS s                        from the process's begin to the first product on the device
    product fp32: NUMBER GFLOP/s            and fp16, on a GPU
    memory: NUMBER GB/s                     a copy on the device, bytes read and bytes written
    convolution fp32: NUMBER GFLOP/s
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

SECONDS = 0.3
"""How long each thing is repeated, at least."""

ORDER = {"cpu": 512, "cuda": 4096}
"""Rows and columns of the matrices: enough to fill the device, little enough for a second."""

COPIED = {"cpu": 1 << 26, "cuda": 1 << 28}
"""Bytes of a copy: more than caches hold."""

# images, channels in and out, height and width, size of the kernel
CONVOLUTION = {"cpu": (2, 64, 56, 3), "cuda": (32, 256, 56, 3)}


def child(device: str, begun: float) -> None:
    """One run; `begun` is when its process was started, on the machine's monotonic clock."""
    import torch

    on = torch.device(device)
    kind = on.type
    wait: Callable[[], Any] = torch.cuda.synchronize if kind == "cuda" else lambda: None
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    order = ORDER[kind]
    first = torch.ones(order, order, device=on)
    (first @ first).sum().item()
    print(f"start: {time.monotonic() - begun:.3f} s", flush=True)

    def told(name: str, unit: str, amount: float, work: Callable[[], Any]) -> None:
        print(f"{name}: {amount / seconds(work, wait) / 1e9:.3f} {unit}", flush=True)

    types = {"fp32": torch.float32} | ({"fp16": torch.float16} if kind == "cuda" else {})
    for name, dtype in types.items():
        a = torch.randn(order, order, device=on).to(dtype)
        told(f"product {name}", "GFLOP/s", 2 * order**3, lambda a=a: a @ a)  # type: ignore[misc]
    source = torch.ones(COPIED[kind], dtype=torch.uint8, device=on)
    target = torch.empty_like(source)
    told("memory", "GB/s", 2 * COPIED[kind], lambda: target.copy_(source))
    images, channels, size, kernel = CONVOLUTION[kind]
    image = torch.randn(images, channels, size, size, device=on)
    weight = torch.randn(channels, channels, kernel, kernel, device=on)
    work = 2 * images * channels**2 * size**2 * kernel**2
    told(
        "convolution fp32",
        "GFLOP/s",
        work,
        lambda: torch.nn.functional.conv2d(image, weight, padding=kernel // 2),
    )


def seconds(work: Callable[[], Any], wait: Callable[[], Any]) -> float:
    """How long a thing takes, repeated until that can be told well."""
    for _ in range(3):
        work()
    wait()
    count, begun = 0, time.perf_counter()
    while count < 3 or time.perf_counter() - begun < SECONDS:
        work()
        wait()
        count += 1
    return (time.perf_counter() - begun) / count


def named(wanted: str) -> tuple[str, str]:
    """torch's word for the device to measure, and what people call it."""
    import torch

    if wanted == "cpu" or (wanted == "auto" and not torch.cuda.is_available()):
        return "cpu", "cpu"
    device = "cuda" if wanted == "auto" else wanted
    about = torch.cuda.get_device_properties(device)
    target = getattr(about, "gcnArchName", "").partition(":")[0]
    # torch for CUDA says the card's name there
    return device, f"{about.name} ({target})" if target.startswith("gfx") else about.name


def main(argv: list[str]) -> int:
    """0 when all ran, else the status of the run that did not."""
    parser = argparse.ArgumentParser(description="Measure torch.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, or cuda:N")
    parser.add_argument("--begun", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.begun is not None:
        child(options.device, options.begun)
        return 0
    device, name = named(options.device)
    print(f"device: {name}", flush=True)
    for _ in range(options.runs):
        words = [sys.executable, __file__, "--device", device, "--begun", repr(time.monotonic())]
        status = subprocess.run(words, stdin=subprocess.DEVNULL, check=False).returncode
        if status:
            return status if status > 0 else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
