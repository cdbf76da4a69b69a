"""What a step's tree went through, stage by stage, found again in the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rocbase.folders.temporary import temporary_folder
from rocwright.execution.exec_step import load_step
from rocwright.model.steps import RunAction, Step, TreeAction
from rocwright.sources.archive import unpack
from rocwright.sources.patching.commits import EDITS, PREPARED, PREPARED_EDITS, UPSTREAM
from rocwright.sources.patching.repository import Repository
from rocwright.store.model import Output, Store, finished, verified


@dataclass(frozen=True, slots=True)
class Stage:
    """A tree that is in the store: the message of its commit, and the archives that make it.

    `tree` is the step whose edits came before it, for how its sources are unpacked.
    """

    message: str
    outputs: tuple[Output, ...]
    unpacked: TreeAction | None = None


def stages_of(step: Step, store: Store) -> list[Stage]:
    """The stages of the tree that a run step sees, the oldest first; what the store lost is left out."""
    key = _input(step, "src")
    stages: list[Stage] = []
    while key:
        tree = load_step(store, key)
        if not isinstance(tree.action, TreeAction):
            break
        source = load_step(store, _input(tree, "source"))
        later = isinstance(source.action, RunAction)
        if tree.action.edits or tree.action.series:
            stages += _stage(PREPARED_EDITS if later else EDITS, key, store)
        if later:
            stages += _stage(PREPARED, source.key, store)
        else:
            stages += _stage(UPSTREAM, source.key, store, tree.action)
        key = _input(source, "src") if later else ""
    return stages[::-1]


def _input(step: Step, name: str) -> str:
    return next((step_input.key for step_input in step.inputs if step_input.name == name), "")


def _stage(message: str, key: str, store: Store, unpacked: TreeAction | None = None) -> list[Stage]:
    record = finished(store, key)
    if record is None:
        return []
    return [Stage(message, tuple(record.outputs), unpacked)]


def make_repository(
    folder: Path, stages: Sequence[Stage], store: Store, say: Callable[[str], None]
) -> Repository:
    """A repository in the empty `folder`, with a commit a stage; each is unpacked anew from the store."""
    from rocwright.execution.tree import unpack_source

    repository = Repository(folder)
    for stage in stages or [Stage(UPSTREAM, ())]:
        with temporary_folder("stage") as scratch:
            content = Path(scratch) / "tree"
            content.mkdir()
            if stage.unpacked is not None:
                unpack_source(stage.unpacked, stage.outputs, store, content, Path(scratch) / "debian")
            else:
                for output in stage.outputs:
                    unpack(verified(store, output.sha256), content, filename=output.filename, wrapped=False)
            say(f"git {repository.commit(content, stage.message)[:12]} {stage.message}")
    repository.finish()
    return repository
