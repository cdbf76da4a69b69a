"""Printing: errors with what helps."""

from __future__ import annotations

from rocbase.cli import tell as plainly
from rocbase.errors import ExplainedError
from rocwright.cli.place import in_place
from rocwright.failures import as_known


def tell(error: ExplainedError, subject: str = "") -> None:
    """Print an error: class, what, detail, cause, what helps, next step."""
    error.next_step = in_place(error.next_step)
    plainly.tell(error, subject, _remedies(error))


def _remedies(error: ExplainedError) -> tuple[tuple[str, str], ...]:
    """What helps: by a machine where it can, and by hand."""
    if error.heal:
        return ("fix", in_place(f"rocwright build --heal   {error.heal}")), ("or", error.remedy)
    return ("fix", error.remedy), ("heal", error.remedy_unavailable)


def tell_any(error: Exception, *, as_json: bool = False) -> int:
    """Print any failure (also as JSON on standard output, if asked); gives the exit code of its class."""
    failure = as_known(error)
    failure.next_step = in_place(failure.next_step)
    return plainly.tell_any(failure, _remedies(failure), as_json=as_json)
