"""The sandbox of a step, opened for a person."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rocbase.errors import SandboxError
from rocbase.folders.removal import remove_tree
from rocwright import sandbox
from rocwright.execution import kept_tree, opened
from rocwright.execution.changes import give_repository, remember
from rocwright.execution.context import Context
from rocwright.execution.exec_step import resolve_inputs
from rocwright.execution.options import StepOptions
from rocwright.execution.run import install, lay_out, lent_cache, prepare
from rocwright.execution.stages import stages_of
from rocwright.execution.workspace import Workspace
from rocwright.home import Home
from rocwright.model.steps import RunAction, Step
from rocwright.sandbox.model import SandboxJob
from rocwright.sandbox.untrusted import Untrusted
from rocwright.sources.patching.history import ENVIRONMENT as GIT
from rocwright.store.leases import locked
from rocwright.store.model import Store

# A shell and a pager leave no files of what was typed in them: to look is no change.
QUIET = {"HISTFILE": "/dev/null", "LESSHISTFILE": "-"}


def open_shell(
    step: Step,
    store: Store,
    home: Home,
    engine: str | None,
    script: str | None,
    say: Callable[[str], None],
) -> int:
    """A shell (or `script`) where the step's commands run; gives its exit status.

    The tree is a git work tree: the build's own commits, and room for the user's on top of them.

    Raises InputError where what the step needs is not in the store.
    """
    assert isinstance(step.action, RunAction)
    workspace = Workspace.of(home, step.key)
    context = Context(
        store=store,
        home=home,
        workspace=workspace,
        inputs=resolve_inputs(store, step),
        on_line=say,
        options=StepOptions(engine=engine),
        step=step,
    )
    with locked(store, step.key), lent_cache(context) as cache:
        # what is done in the shell is not the commands' doing, also where it is killed
        note = kept_tree.drop(workspace)
        if workspace.source.is_symlink() or workspace.source.exists():
            say(f"the tree is as the last build left it ({workspace.source})")
        else:
            workspace.create()
            lay_out(context)
        repository, names = None, _names(workspace.build)
        if not workspace.is_open:
            repository = give_repository(step, workspace, stages_of(step, store), store, say)
        job = replace(prepare(step.action, context, cache), seconds=None, memory=None)
        if repository is not None:
            remember(step, workspace, repository)
        job = replace(job, env=dict(job.env) | GIT)
        chosen = sandbox.pick(engine, home.probes)
        snapshot = None
        # a repository that the step left was put aside for the shell's
        if note and names == _names(workspace.build):
            snapshot = _looked(workspace, step, note)
        if snapshot is None:
            install(chosen, job, step.action, context)
        if note:
            message = "goes on where it stood, if this shell changes nothing" if snapshot else "starts clean"
            say(f"the next build of {step.name} {message}")
        code = _open(chosen, job, step.action, script, say)
        if snapshot is not None:
            unchanged = give_back(workspace, step.name, snapshot)
            message = (
                "nothing was changed: it goes on where it stood" if unchanged else "changed: it starts clean"
            )
            say(f"the next build of {step.name}: {message}")
        return code


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _looked(workspace: Workspace, step: Step, note: bytes) -> Looked | None:
    state = look(workspace, step.name)
    return None if state is None else Looked(note=note, state=state)


def _open(
    chosen: sandbox.Engine, job: SandboxJob, action: RunAction, script: str | None, say: Callable[[str], None]
) -> int:
    if script is not None:
        outcome = sandbox.run(
            chosen, replace(job, argv=("/bin/sh", "-c", script)), lambda line: print(line, flush=True)
        )
        return outcome.code
    say(f"sandbox {chosen.name}; the step's commands:")
    for command in action.commands:
        say(f"  {command}")
    env = dict(job.env) | QUIET | ({"TERM": "xterm-256color"} if sys.stdin.isatty() else {})
    argv = ("/bin/sh", "-c", "if command -v bash >/dev/null; then exec bash -i; else exec sh -i; fi")
    return sandbox.interactive(chosen, replace(job, argv=argv, env=env))


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
