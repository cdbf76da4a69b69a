"""What is being done when something fails."""

from __future__ import annotations

from enum import StrEnum


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
