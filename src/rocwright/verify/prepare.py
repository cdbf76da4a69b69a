"""What is built, ready to be tried: root file systems and wheels, and each component with its artifacts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import InputError
from rocwright.catalog.load import Catalog
from rocwright.execution.disk import check_room
from rocwright.execution.estimate import expected
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import Progress
from rocwright.execution.runs import UnderWay
from rocwright.farm.executors import run_steps
from rocwright.model.steps import Plan
from rocwright.plan.decide import State, decide
from rocwright.plan.packages import RUN_WHEELS
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.validate import PUBLISHED_WHEELS
from rocwright.project import Project
from rocwright.sources.bases.roots import unpacked_root
from rocwright.store.model import Output, Record
from rocwright.verify.emulated import Emulation
from rocwright.verify.subject import VerifySubject

BUILD_ROOT, CHECK_ROOT = "root/build", "root/check"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A lock of a project, built: its artifacts by component, and what was made to try them in."""

    project: Project
    lock: Lock
    artifacts: dict[str, Output]
    made: Mapping[str, Record]
    logs: Path
    say: Callable[[str], None]

    def subjects(
        self,
        root: str,
        engine: str | None,
        emulation: Emulation | None = None,
        memory: int | None = None,
        model: Path | None = None,
        runs: int = 1,
    ) -> list[VerifySubject]:
        """Each component that was built, in that root file system; programs that measure read `model`, and
        measure `runs` times."""
        record = self.made.get(root)
        folder = _unpacked(self.project, record, self.say) if record is not None else None
        place = (self.artifacts, folder, self.made.get(RUN_WHEELS), engine, self.logs, emulation, memory)
        # a file is handed on as it was published: nothing of it is built
        names = [component.name for component in self.lock.components if component.name in self.artifacts]
        built = [self.project.catalog.component(name) for name in names]
        return [
            VerifySubject(self.project, self.lock, component, *place, model=model, runs=runs)
            for component in built
        ]


def check_wheels(lock: Lock, project: Project) -> None:
    """Raises InputError where the lock does not say what checks install beside the wheels that were built."""
    components = [project.catalog.component(component.name) for component in lock.components]
    wants = [component.name for component in components if component.python_run]
    install = any(check.wheels for component in components for check in component.check)
    if wants and install and lock.python_run is None:
        raise InputError(
            "the lock has no Python packages for the checks",
            cause=f"it was made before {', '.join(wants)} named those that it requires when it is imported",
            next_step="rocwright lock: everything else in it stays as it is",
        )


def checked_in(plan: Plan, catalog: Catalog) -> tuple[str, ...]:
    """The names of the steps of what checks run in: none where nothing that is checked is built, for wheels
    of others are only read."""
    built = (step.component for step in plan.steps if step.name in plan.artifacts)
    checked = any(
        catalog.component(name).check and catalog.component(name).kind != PUBLISHED_WHEELS for name in built
    )
    return (CHECK_ROOT, RUN_WHEELS) if checked else ()


def made_steps(
    names: Collection[str], project: Project, plan: Plan, under_way: UnderWay, progress: Progress
) -> dict[str, Record]:
    """The records of the steps of these names, root file systems and wheels, made where they are missing.

    Raises what failed.
    """
    steps = [step for step in plan.steps if step.name in names]
    if not steps:
        return {}
    decisions = decide(plan, project.store, required=tuple(step.name for step in steps))
    if any(decision.state is State.RUN for decision in decisions):
        check_room(decisions, project.home)
        with progress:
            outcome = run_steps(
                decisions,
                project.store,
                project.home,
                BuildOptions(),
                under_way.folder,
                expected(project, decisions),
                progress,
                under_way,
            )
        if outcome.failures:
            raise outcome.failures[0][1]
    records = {step.name: project.store.record(step.key) for step in steps}
    return {name: record for name, record in records.items() if record is not None}


def _unpacked(project: Project, record: Record, say: Callable[[str], None]) -> Path:
    return unpacked_root(project.store, record.output("root").sha256, project.home.roots, say)
