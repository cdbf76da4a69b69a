"""Executors by name: that of this machine, and those that other packages bring as entry points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import cast

from rocbase.errors import InputError
from rocwright import plugins
from rocwright.execution.estimate import Expected
from rocwright.execution.executor import Executor
from rocwright.execution.options import LOCAL, BuildOptions
from rocwright.execution.outcome import StepsOutcome
from rocwright.execution.progress import Progress
from rocwright.execution.scheduler import Notes, schedule
from rocwright.home import Home
from rocwright.plan.decide import Decision
from rocwright.store.model import Store

# The group of entry points; each gives what is called as `Maker` is.
GROUP = "rocwright.executors"

# Makes an executor for one build: from the home folder, the build's options, and who says lines to people.
Maker = Callable[[Home, BuildOptions, Callable[[str], None]], Executor]


def names() -> tuple[str, ...]:
    """The names of all executors that are installed."""
    return (LOCAL, *sorted({point.name for point in entry_points(group=GROUP)} - {LOCAL}))


def find_maker(name: str) -> Maker:
    """What makes the executor of that name. Raises InputError where nothing, or more than one thing, does."""
    if name == LOCAL:
        from rocwright.farm.local import LocalExecutor

        return LocalExecutor
    maker = plugins.load(GROUP, name)
    if maker is None:
        raise InputError(
            f"there is no executor {name!r}",
            cause=f"installed: {', '.join(names())}",
            next_step=f"install the package that provides it (entry point in {GROUP}), or leave out "
            "--executor",
        )
    return cast("Maker", maker)


def run_steps(
    decisions: Sequence[Decision],
    store: Store,
    home: Home,
    options: BuildOptions,
    logs: Path,
    expected: Mapping[str, Expected],
    progress: Progress,
    under_way: Notes | None = None,
) -> StepsOutcome:
    """Run every step that must run, by the executor that the options name.

    Raises what `schedule` raises, and InputError for a name that nobody knows.
    """
    executor = find_maker(options.executor)(home, options, progress.say)
    return schedule(decisions, store, executor, options, logs, expected, progress, under_way)
