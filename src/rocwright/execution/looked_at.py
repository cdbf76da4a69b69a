"""A kept tree that a shell only looked at: it is as it was, by all that the kernel says of it.

The time of a file's status cannot be set by who changes the file, so nothing is read and no link followed.
"""

from __future__ import annotations

from dataclasses import dataclass

from rocbase.errors import SandboxError
from rocbase.folders.removal import remove_tree
from rocwright.execution import kept_tree, opened
from rocwright.execution.workspace import Workspace
from rocwright.sandbox.untrusted import Untrusted

State = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What a sandbox could write of a workspace when a shell was opened in it, and the note of the tree."""

    note: bytes
    state: State


def look(workspace: Workspace, step: str) -> State | None:
    """Everything in the folders that a sandbox may write, but the shell's repository; None where it cannot be
    searched."""
    state: State = {}
    try:
        for folder in (workspace.build, workspace.out):
            for entry in Untrusted(folder, step).walk():
                if f"{entry.path}/".startswith(f"{opened.REPOSITORY}/"):
                    continue
                status = entry.stat
                name = f"{folder.name}/{entry.path}"
                state[name] = (status.st_mode, status.st_dev, status.st_ino)
                if not entry.is_folder:
                    state[name] += (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    except (SandboxError, OSError):
        return None
    return state


def give_back(workspace: Workspace, step: str, snapshot: Looked) -> bool:
    """Have the next attempt go on in the tree if nothing in it was changed; whether that is so."""
    if workspace.unsaved() or look(workspace, step) != snapshot.state:
        return False
    if not remove_tree(workspace.build / opened.REPOSITORY):
        return False
    (workspace.path / opened.NOTE).unlink()
    kept_tree.put_back(workspace, snapshot.note)
    return True
