"""What it means that a step's process ended and told nothing."""

from __future__ import annotations

import signal

from rocbase.errors import ExplainedError, InternalError, InterruptedByUser
from rocwright.sandbox.memory import machine_kills


def killed(code: int, previous: int | None) -> ExplainedError:
    """The error of a step's process that told nothing; `previous` is how many the kernel had killed then."""
    current = machine_kills()
    if code != -signal.SIGKILL:
        return InternalError(
            f"the step's process ended with {code} and no message",
            cause="a fault of rocwright",
            next_step="rocwright logs shows its last lines; please report them",
        )
    kernel = (
        "the kernel's counters say that it did not"
        if previous is not None and previous == current
        else "or the kernel for lack of memory: its counters are for the whole machine, so that is uncertain"
    )
    return InterruptedByUser(
        "the step's process was killed",
        cause=f"a user killed it, or a service that frees memory; {kernel}",
        next_step="run again; with fewer jobs if memory is short (rocwright build --jobs 1)",
    )


def interrupted() -> InterruptedByUser:
    """The error of a build, or of a step of it, that somebody stopped."""
    return InterruptedByUser(
        "stopped",
        cause="Ctrl-C, or asked to end",
        next_step="finished steps are kept: the same command continues from there",
    )
