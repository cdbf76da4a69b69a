"""A step's folder while it runs: kept where it failed, so that one can look; removed where it is done."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import InputError
from rocwright.home import Home
from rocwright.model.step_environment import NOTE
from rocwright.model.steps import Step
from rocwright.sources.bases.roots import remove_tree

CCACHE = "/ccache"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Folders on the host; in the sandbox they are /build (with src, home, tmp) and /out."""

    path: Path

    @classmethod
    def of(cls, home: Home, key: str) -> Workspace:
        return cls(home.work / key[:16])

    @property
    def build(self) -> Path:
        return self.path / "build"

    @property
    def source(self) -> Path:
        return self.path / "build" / "src"

    @property
    def out(self) -> Path:
        return self.path / "out"

    @property
    def inputs(self) -> Path:
        return self.path / "in"

    @property
    def scratch(self) -> Path:
        return self.path / "scratch"

    def create(self) -> None:
        """Make the folders empty."""
        self.remove()
        for folder in (
            self.source,
            self.build / "home",
            self.build / "tmp",
            self.out,
            self.inputs,
            self.scratch,
        ):
            folder.mkdir(parents=True)

    def empty_scratch(self) -> None:
        """Remove what no sandbox saw of an attempt before this one."""
        remove_tree(self.scratch)
        self.scratch.mkdir()

    def remove(self) -> None:
        remove_tree(self.path)

    @property
    def is_open(self) -> bool:
        """Whether a shell was opened in this tree."""
        return (self.path / NOTE).is_file()

    def unsaved(self) -> list[str]:
        """What a user changed in this tree in a shell, and has not saved."""
        if not os.path.lexists(self.path / NOTE):
            return []
        from rocwright.execution.opened import unsaved

        return unsaved(self.path, self.build)


def spare_the_users_work(steps: Iterable[Step], home: Home, *, discard: bool = False) -> None:
    """Raises InputError where a tree of these steps holds a user's work; with `discard` it is removed."""
    workspaces = {step.name: Workspace.of(home, step.key) for step in steps}
    unsaved = {name: changes for name, workspace in workspaces.items() if (changes := workspace.unsaved())}
    if not unsaved:
        return
    if discard:
        for name in unsaved:
            workspaces[name].remove()
        return
    name, changes = next(iter(unsaved.items()))
    suffix = f" and {len(changes) - 4} more" if len(changes) > 4 else ""
    raise InputError(
        f"the tree of {', '.join(unsaved)} has unsaved changes",
        cause=f"made in rocwright shell {name}: {', '.join(changes[:4])}{suffix}",
        detail=f"the tree: {workspaces[name].source}",
        next_step=f"rocwright patch save {name} --message WHY keeps them (git add a new file first); "
        "rocwright build --discard throws them away",
    )
