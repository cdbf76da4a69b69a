"""What is being done when something fails."""

from __future__ import annotations

from enum import StrEnum

from rocbase.errors import InputError


class Phase(StrEnum):
    """The closed set of phases; `run` is the use of what was built."""

    FETCH = "fetch"
    ROOT = "root"
    PATCH = "patch"
    PREPARE = "prepare"
    BUILD = "build"
    IMAGE = "image"
    CHECK = "check"
    RUN = "run"


def phase_named(name: str) -> Phase:
    """The phase of that name. Raises InputError for any other name."""
    if name not in list(Phase):
        raise InputError(
            f"{name!r} is not a phase of a build",
            cause=f"these are: {', '.join(Phase)}",
            next_step="name one of them, or leave it out",
        )
    return Phase(name)
