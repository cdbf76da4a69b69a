"""Runs named checks on every device and prints one line of JSON for each, behind `ROCWRIGHT-CHECK `."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Sequence

Check = Callable[[str], str]
"""Takes a torch device (cpu, cuda), gives a detail for people, raises where a value is wrong."""


def run(checks: Sequence[tuple[str, Check]], *, cpu_only: Sequence[str] = ()) -> int:
    """Run each check on the CPU, and on the GPU where there is one; 1 if any failed.

    The first check is expected to import what the others need: if it fails, the others are not run.
    """
    failed = 0
    devices = {"cpu": "cpu"}
    for index, (name, check) in enumerate(checks):
        for device, title in devices.items():
            if device == "cpu" or name not in cpu_only:
                failed += not told(name, check, device, title)
        if index == 0:
            if failed:
                break
            devices.update(gpu())
    return 1 if failed else 0


def told(name: str, check: Check, device: str, title: str) -> bool:
    """Run one check and print its line; a traceback goes to the error output, whole."""
    try:
        detail, ok = check(device), True
    except Exception as error:
        traceback.print_exc()
        detail, ok = f"{type(error).__name__}: {error}", False
    line = {"name": name, "ok": ok, "detail": detail, "device": title}
    print("ROCWRIGHT-CHECK " + json.dumps(line, sort_keys=True), flush=True)
    return ok


def gpu() -> dict[str, str]:
    import torch

    return {"cuda": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}


def near(what: str, got: Sequence[float], expected: Sequence[float], tolerance: float) -> str:
    """Both sequences, value by value, within an absolute tolerance; the largest difference as text."""
    assert len(got) == len(expected), f"{what}: {len(got)} values where {len(expected)} are expected"
    worst, at = max((abs(value - expected[i]), i) for i, value in enumerate(got))
    difference = f"largest difference {worst:.2g} of {tolerance:g} allowed, in {len(got)} values"
    assert worst <= tolerance, (
        f"{what}: {difference}, at {at}: {got[at]!r} where {expected[at]!r} is expected"
    )
    return difference
