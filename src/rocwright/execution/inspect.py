"""The sandbox of a step, opened for a person."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

from rocwright import sandbox
from rocwright.execution import kept_tree
from rocwright.execution.changes import give_repository, remember
from rocwright.execution.context import Context
from rocwright.execution.exec_step import resolve_inputs
from rocwright.execution.run import install, lay_out, lent_cache, prepare
from rocwright.execution.stages import stages_of
from rocwright.execution.workspace import Workspace
from rocwright.home import Home
from rocwright.model.steps import RunAction, Step
from rocwright.patching.history import ENVIRONMENT as GIT
from rocwright.store.model import Store


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
        engine=engine,
        step=step,
    )
    with store.lock(step.key), lent_cache(context) as cache:
        # whatever is done in the shell, it is not the commands' doing
        if kept_tree.drop(workspace):
            say(f"the next build of {step.name} starts clean")
        if workspace.source.is_symlink() or workspace.source.exists():
            say(f"the tree is as the last build left it ({workspace.source})")
        else:
            workspace.create()
            lay_out(context)
        repository = None
        if not workspace.is_open:
            repository = give_repository(step, workspace, stages_of(step, store), store, say)
        job = replace(prepare(step.action, context, cache), seconds=None, memory=None)
        if repository is not None:
            remember(step, workspace, repository)
        job = replace(job, env=dict(job.env) | GIT)
        chosen = sandbox.pick(engine, home.probes)
        install(chosen, job, step.action, context)
        if script is not None:
            outcome = sandbox.run(
                chosen, replace(job, argv=("/bin/sh", "-c", script)), lambda line: print(line, flush=True)
            )
            return outcome.code
        say(f"sandbox {chosen.name}; the step's commands:")
        for command in step.action.commands:
            say(f"  {command}")
        terminal = {"TERM": "xterm-256color"} if sys.stdin.isatty() else {}
        argv = ("/bin/sh", "-c", "if command -v bash >/dev/null; then exec bash -i; else exec sh -i; fi")
        return sandbox.interactive(chosen, replace(job, argv=argv, env=dict(job.env) | terminal))
