"""A command in a sandbox that nobody waits for: a server. It is made ready here; the caller starts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rocwright.sandbox import inside, state
from rocwright.sandbox.bubblewrap import BOUND as BOUND
from rocwright.sandbox.bubblewrap import Bubblewrap, described
from rocwright.sandbox.engine import Scene, host_environment
from rocwright.sandbox.layout import MountLayout, make_layout
from rocwright.sandbox.model import SandboxJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A command line that runs the job, in the environment `env`; its processes outside carry the mark."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


def make_ready(job: SandboxJob, folder: Path, mark: str, *, stays: bool) -> Ready:
    """The command for a job, whose mount points and settings are written to `folder`, which must be empty.

    It runs without limits of memory and time, and, where it `stays`, goes on when its starter ends. Raises
    InputError as `run` does.
    """
    layout = make_layout(job, folder)
    scene = replace(_scene(job, mark, layout), folder=folder, stays=stays)
    return Ready(argv=Bubblewrap().launch(scene).argv, env=host_environment(mark))


def describe(job: SandboxJob, mark: str) -> Ready:
    """Return the command for a job as a reader understands it: what it shows of which root, and what it runs.

    Nothing is written, so the command lacks the mount points and the filter of system calls.
    """
    scene = _scene(job, mark, MountLayout(skeleton=job.root, mounts=job.mounts))
    return Ready(argv=described(scene), env=host_environment(mark))


def _scene(job: SandboxJob, mark: str, layout: MountLayout) -> Scene:
    # no terminal is handed on: the job may stay in the session that it is started in, and be ended with it
    return Scene(
        name=mark,
        folder=layout.skeleton.parent,
        skeleton=layout.skeleton,
        mounts=layout.mounts,
        command=inside.plain(job),
        network=job.network,
        devices=job.devices,
        terminal=True,
        as_caller=job.as_caller,
    )


def staying(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command of a job that was bound to its starter, so that it goes on without it."""
    end = argv.index("--") if "--" in argv else len(argv)
    return (*(word for word in argv[:end] if word != BOUND), *argv[end:])


def processes(mark: str) -> list[int]:
    """Those processes of the engine that carry the mark: while one is there, the job may run."""
    return state.marked_with(mark)


def kill(mark: str) -> None:
    """SIGKILL all that carries the mark, and with it all inside."""
    state.kill_all(mark, None)
