"""What it means that a step's process ended and told nothing."""

from __future__ import annotations

import signal

from rocwright.errors import InternalError, InterruptedByUser, RocwrightError
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
    kernel = (
        "the kernel did not, by its own count"
        if before is not None and before == after
        else "or the kernel, for memory: it counts for the whole machine, so that cannot be told here"
    )
    return InterruptedByUser(
        "the step's process was killed",
        cause=f"somebody ended it, or a service that frees memory; {kernel}",
        next_step="run again; with fewer jobs where memory is short (rocwright build --jobs 1)",
    )


def interrupted() -> InterruptedByUser:
    """The error of a build, or of a step of it, that somebody stopped."""
    return InterruptedByUser(
        "stopped",
        cause="Ctrl-C, or asked to end",
        next_step="what was finished is kept: the same command goes on from there",
    )
