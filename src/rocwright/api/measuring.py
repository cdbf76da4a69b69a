"""How fast what is built is, from Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rocwright.api.gpus import silent
from rocwright.api.projects import Say

if TYPE_CHECKING:
    from rocwright.execution.progress import Progress
    from rocwright.plan.resolve.model import Lock
    from rocwright.project import Project
    from rocwright.records.model import Figure


def bench(
    project: Project,
    locked: Lock | None = None,
    *,
    engine: str | None = None,
    runs: int = 5,
    model: str | Path | None = None,
    run_id: str = "",
    progress: Progress | None = None,
    say: Say = silent,
) -> list[Figure]:
    """Measure what is built, each figure `runs` times, and keep the figures under `run_id`, or a new id.

    What is measured is data (bench.toml); each figure names its unit and the device. `model` is a model in
    GGUF for what runs models of language, else a tiny one that rocwright makes. Raises InputError where the
    project is not built as its lock says, nothing of it is measured, `model` is none, or the GPU is emulated;
    CheckError where a program fails.
    """
    from rocwright.flow import built_lock
    from rocwright.verify.bench.run import bench as measure

    locked = locked or built_lock(project, say)
    path = None if model is None else Path(model).expanduser().resolve()
    return measure(
        project,
        locked,
        engine=engine,
        runs=runs,
        model=path,
        run_id=run_id,
        say=say,
        progress=progress,
    )
