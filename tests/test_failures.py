"""What nobody foresaw names rocwright, and what of its own may go."""

from __future__ import annotations

from rocbase.errors import InternalError, OutOfDiskError
from rocwright.failures import as_known


def test_a_full_disk_is_told_with_the_command_that_frees_it() -> None:
    told = as_known(OSError(28, "No space left on device"))
    assert isinstance(told, OutOfDiskError)
    assert "rocwright clean --dry-run" in told.next_step


def test_what_nobody_foresaw_is_told_as_a_fault_of_rocwright() -> None:
    told = as_known(ZeroDivisionError("division by zero"))
    assert isinstance(told, InternalError)
    assert told.cause == "a fault of rocwright"
    assert "rocwright --debug" in told.next_step
