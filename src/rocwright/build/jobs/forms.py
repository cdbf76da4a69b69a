"""How the tools in a root hear of the job server, or of a number where they know none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from packaging.version import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The variables for a step's tools. `shares` tells that some are clients of the server; `descriptors`
    are those that the step's shell opens from the fifo, for tools that know no fifo by its name."""

    env: Mapping[str, str]
    shares: bool
    descriptors: tuple[int, ...] = ()


def choose_form(tools: Mapping[str, Version], fifo: str | None, jobs: int) -> Form:
    """The form for the tools that a root has, by their versions; `fifo` is its path inside, None without a
    server.

    `jobs` is the number for tools that know no job server.
    """
    numbers = ("JOBS", "MAX_JOBS", "CMAKE_BUILD_PARALLEL_LEVEL")
    return Form(env={name: str(jobs) for name in numbers} | {"MAKEFLAGS": f"-j{jobs}"}, shares=False)
