"""What it means that a step's process ended and told nothing."""

from __future__ import annotations

import signal

from rocwright.errors import InternalError, InterruptedByUser, OutOfMemoryError, RocwrightError
from rocwright.sandbox.memory import machine_kills


def killed(code: int, before: int | None) -> RocwrightError:
    """The error of a step's process that told nothing; `before` is how many the kernel had killed then."""
    after = machine_kills()
    if code != -signal.SIGKILL:
        return InternalError(
            f"the step's process ended with {code} and told nothing",
            cause="a fault of rocwright",
            next_step="rocwright logs shows its last lines; please report them",
        )
    if before is None or before != after:
        return OutOfMemoryError(
            "the step's process was killed",
            cause="the kernel had no memory left for it",
            next_step="run again; with fewer jobs where memory is short (rocwright build --jobs 1)",
        )
    return InterruptedByUser(
        "the step's process was killed",
        cause="somebody ended it, or a service that frees memory; the kernel did not, by its own count",
        next_step="run again; with fewer jobs where memory is short (rocwright build --jobs 1)",
    )
