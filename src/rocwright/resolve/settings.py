"""The project file whole: what is asked for, and the settings of what follows upstream."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rocwright.models import Frozen
from rocwright.resolve.model import Request

Take = Literal["patch", "stable", "all"]
"""What is worth telling: releases of the same minor version, any that is no pre-release, or all."""


class WatchSettings(Frozen):
    """`[watch]`: what `rocwright watch` and `rocwright bump` take.

    `cool_down` are the days that must have passed since a release (0: none); a release whose day nobody tells
    is not held back, and is told as such. `branches` maps components to the git branch that each follows.
    `seconds` is how long one source may take to answer.
    """

    take: Take = "stable"
    cool_down: int = Field(default=7, ge=0, le=3650, alias="cool-down")
    branches: dict[str, str] = {}
    seconds: float = Field(default=30, gt=0, le=3600)


class ProjectFile(Request):
    """`rocwright.toml`: a request, and the tables of settings beside it, which no lock depends on."""

    watch: WatchSettings = WatchSettings()

    @property
    def request(self) -> Request:
        """What a lock answers."""
        return Request.model_validate({name: getattr(self, name) for name in Request.model_fields})
