"""The tree of a step that was cut short, and the note that says how far its commands came.

The note lies beside the folders that a sandbox sees: no step writes it, and of the tree itself nothing is
read here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable

from pydantic import ValidationError

from rocbase.files.atomic import write_atomic
from rocbase.model import Frozen
from rocbase.processes.outlive import boot_id
from rocwright import __version__, sandbox
from rocwright.execution.compiler_cache import trusted_signers
from rocwright.execution.workspace import Workspace
from rocwright.model.step_environment import NOTE as OPENED
from rocwright.model.steps import RunAction, Step

NOTE = "kept.json"


class TreeNote(Frozen):
    """What a tree is of, and how far it is: the step's key, the key over what its inputs really are, and the
    rocwright and the boot of the machine under which it was made. `ended` is how many commands have ended,
    `resumed` how often they were gone on with; `cached` says that a compiler cache had a part in it that
    earlier steps had filled, `others` are the ids of keys that signed what came into it from other
    machines."""

    key: str
    content_key: str
    rocwright: str
    boot: str
    ended: int = 0
    resumed: int = 0
    cached: bool = False
    others: tuple[str, ...] = ()


class Noting:
    """The note of a tree in which commands run. It is written where the step may go on in it."""

    def __init__(self, workspace: Workspace, note: TreeNote, *, writes: bool) -> None:
        self._workspace, self._writes = workspace, writes
        self.kept = note
        self.note()

    def note(self, **fields: object) -> None:
        """Note what is known of it now."""
        self.kept = self.kept.model_copy(update=fields)
        if self._writes:
            write(self._workspace, self.kept)


def begin(key: str, content_key: str) -> TreeNote:
    """The note of a tree that is clean."""
    return TreeNote(key=key, content_key=content_key, rocwright=__version__, boot=boot_id())


def write(workspace: Workspace, note: TreeNote) -> None:
    """Note how far the commands are."""
    write_atomic(workspace.path / NOTE, note.model_dump_json())


def drop(workspace: Workspace) -> bytes:
    """Have the next attempt start clean; gives the note of a tree in which it would have gone on, as far as
    is known, and nothing where there was none."""
    try:
        note = (workspace.path / NOTE).read_bytes()
        (workspace.path / NOTE).unlink()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    return note


def put_back(workspace: Workspace, note: bytes) -> None:
    """Have it go on after all: nothing has changed since that note was taken."""
    write_atomic(workspace.path / NOTE, note)


def find(
    step: Step, content_key: str, workspace: Workspace, say: Callable[[str], None], *, compiler_cache: bool
) -> TreeNote | None:
    """The note of a tree in which this step may go on; None where it starts clean, which is said where there
    is a tree. Nothing of an attempt that was killed runs in it any more."""
    assert isinstance(step.action, RunAction)
    try:
        note = TreeNote.model_validate(json.loads((workspace.path / NOTE).read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ValidationError):
        say("starts clean: the note about the kept tree is damaged")
        return None
    reason = _why_not(note, begin(step.key, content_key), step.action.resume)
    if not reason and note.cached and not compiler_cache:
        reason = "a compiler cache had a part in the kept tree"
    if not reason and not set(note.others) <= trusted_signers():
        reason = "a key that is not trusted any more had signed some of the kept tree"
    if not reason and os.path.lexists(workspace.path / OPENED):
        reason = "a shell was opened in the kept tree"
    if reason:
        say(f"starts clean: {reason}")
        return None
    sandbox.sweep()
    return note.model_copy(update={"resumed": note.resumed + 1})


def _why_not(note: TreeNote, current: TreeNote, resume: int) -> str:
    if note.key != current.key:
        return "the kept tree is of another step"
    if note.content_key != current.content_key:
        return "what the kept tree was made of is not the same any more"
    if note.rocwright != current.rocwright:
        return f"the kept tree was made by rocwright {note.rocwright}"
    if not current.boot or note.boot != current.boot:
        return "the machine was restarted since; files of the kept tree may be cut off"
    if not resume:
        return "its recipe does not say from which command on it can go on"
    if note.ended < resume - 1:
        return f"it was cut short before command {resume}, from which on it can go on"
    return ""
