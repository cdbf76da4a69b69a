"""What nobody foresaw, as a failure that a user can read."""

from __future__ import annotations

from rocbase import errors


def as_known(error: Exception) -> errors.ExplainedError:
    """Any failure as one that a user can read; what nobody foresaw is a fault of rocwright."""
    return errors.as_known(error, "rocwright", "rocwright clean --dry-run lists what can be removed")
