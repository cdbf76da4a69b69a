"""What of a machine speaks for or against causes that a log names."""

from __future__ import annotations

from collections.abc import Iterable

from rocwright.diagnosis.here import Here
from rocwright.machine.model import Driver, Gpu


def evidence(gpus: Iterable[Gpu], driver: Driver) -> Here:
    """Of the cards that are known; two of one kind have the firmware of the first that tells it."""
    firmware: dict[str, dict[str, int]] = {}
    for gpu in gpus:
        if gpu.target is not None:
            firmware[gpu.target] = {**gpu.firmware, **firmware.get(gpu.target, {})}
    return Here(
        kernel=driver.kernel,
        driver=driver.version,
        firmware=firmware,
        settings=driver.settings,
    )
