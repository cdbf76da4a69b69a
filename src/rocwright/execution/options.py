"""What a user may say about a build: one table, from the command line down to each step."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from typing import Any, Self

# The executor that runs steps on this machine.
LOCAL = "local"


# The key of a field's metadata under which the settings of its option are: pydantic reads the others.
CLICK = "click"


def _option(*words: str, text: str, default: Any = None, **settings: Any) -> Any:
    """Return a field with its option and help `text`: a switch if `default` is a bool, else with a value."""
    if isinstance(default, bool):
        settings |= {"flag_value": not default, "default": default}
    settings |= {"words": words, "help": text}
    if callable(default):
        return field(default_factory=default, metadata={CLICK: settings})
    return field(default=default, metadata={CLICK: settings})


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """Options that every step of a build gets, on whatever machine it runs.

    `engine` is a sandbox engine by name, None for the first that works. Without `compiler_cache` everything
    is compiled again. Without `resume` a step that was cut short starts clean.
    """

    engine: str | None = _option("--engine", text="The sandbox engine. [default: the first that works here]")
    compiler_cache: bool = _option(
        "--no-compiler-cache",
        text="Compile everything again, without the compiler caches of earlier builds.",
        default=True,
    )
    resume: bool = _option(
        "--no-resume",
        text="Start steps clean that were cut short, instead of going on where they were.",
        default=True,
    )

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> Self:
        """Return the options of those names in `values`, with the default of each that is None."""
        names = {option.name for option in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in names and value is not None})


STEP_DEFAULTS = StepOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions(StepOptions):
    """All options of a build, made once and passed whole.

    `jobs` is the most processes at once, `memory` the most bytes that the build may take, None for what the
    machine has. Without `sharing` each step has a fixed number of jobs instead of a job server. `executor`
    is what runs the steps, by name, `shards` the parts of a large step, None for as many as the executor has
    machines. `keep_stopped` keeps the folder of a step that a full disk stopped. `discard` gives up changes
    in opened trees that nobody saved.
    """

    jobs: int = _option(
        *("--jobs", "-j"),
        text="Maximum number of parallel processes. [default: all cores]",
        default=lambda: os.cpu_count() or 1,
        least=1,
    )
    memory: int | None = _option(
        "--memory",
        text="Memory limit of the whole build, such as 12GiB. [default: what the machine has]",
        metavar="SIZE",
    )
    sharing: bool = _option(
        "--no-job-server",
        text="Give each step a fixed number of jobs, and never pause a process.",
        default=True,
    )
    executor: str = _option(
        "--executor",
        text="What runs the steps: local, dask or slurm (see rocwright farm), or one of another package.",
        default=LOCAL,
        metavar="NAME",
    )
    shards: int | None = _option(
        "--shards",
        text="Compile large steps in so many parts, each a step of its own; 1 for none.  [default: as many "
        "as dask or slurm has machines]",
        least=1,
    )
    keep_stopped: bool = _option(
        "--keep-stopped",
        text="Keep the build folder of a step that was stopped because the disk was full.",
        default=False,
    )
    discard: bool = _option(
        "--discard",
        text="Discard unsaved changes in trees that were opened with rocwright shell.",
        default=False,
    )

    def for_steps(self) -> StepOptions:
        """Return what goes along with each step."""
        return StepOptions(**{option.name: getattr(self, option.name) for option in fields(StepOptions)})
