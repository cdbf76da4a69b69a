"""A step's commands as a person would type them: tar, then bubblewrap with the same root and environment."""

from __future__ import annotations

import shlex
from pathlib import Path

from benchmarks.measure import Took, timed
from benchmarks.place import Scratch
from rocwright.execution.context import Context
from rocwright.execution.exec_step import resolve_inputs
from rocwright.execution.run import install_script, lent_cache, prepare
from rocwright.execution.workspace import Workspace
from rocwright.model.step_environment import IN
from rocwright.model.steps import RunAction, Step
from rocwright.sandbox.model import SandboxJob

_OWN = {"proc", "sys", "dev", "run", "tmp", "build", "out", "ccache", "in"}


def job_of(scratch: Scratch, step: Step, jobs: int) -> SandboxJob:
    """The sandbox that rocwright would make for a step: its root, command and whole environment."""
    assert isinstance(step.action, RunAction)
    workspace = Workspace.of(scratch.home, step.key)
    workspace.create()
    context = Context(
        store=scratch.store,
        home=scratch.home,
        workspace=workspace,
        inputs=resolve_inputs(scratch.store, step),
        on_line=lambda _: None,
        jobs=jobs,
        step=step,
    )
    with lent_cache(context) as cache:
        job = prepare(step.action, context, cache)
    workspace.remove()
    return job


def by_hand(
    scratch: Scratch,
    step: Step,
    *,
    jobs: int,
) -> Took:
    """Run a step's commands as typed by hand, with an empty compiler cache."""
    folder = scratch.path / "by-hand"
    scratch.drop(folder)
    folder.mkdir()
    file = folder / "type-this.sh"
    job = job_of(scratch, step, jobs)
    assert isinstance(step.action, RunAction)
    installs = install_script(step.action) if step.action.own_python else ""
    tree = scratch.input_of(step, "src")
    file.write_text(script(job, tree=tree, installs=installs, folder=folder))
    took = timed(["/bin/sh", "-eu", file], log=scratch.log)
    for path in (folder / "out").iterdir():
        print(f"    by hand: {path.name} in {took.wall:.1f} s", flush=True)
    scratch.drop(folder)
    return took


def script(job: SandboxJob, *, tree: Path, installs: str, folder: Path) -> str:
    """The whole of what is typed; `installs` are the commands that install the wheels of the step, if any."""
    root = job.root.resolve()
    bwrap = ["bwrap", "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    bwrap += ["--unshare-net", "--unshare-user", "--uid", "1000", "--gid", "1000", "--hostname", "rocwright"]
    for entry in sorted(root.iterdir()):
        if entry.name in _OWN:
            continue
        if entry.is_symlink():
            bwrap += ["--symlink", str(entry.readlink()), f"/{entry.name}"]
        elif entry.is_dir():
            bwrap += ["--ro-bind", str(entry), f"/{entry.name}"]
    bwrap += ["--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys"]
    bwrap += ["--perms", "1777", "--tmpfs", "/tmp", "--tmpfs", "/run"]
    for name in ("build", "out", "ccache"):
        bwrap += ["--bind", str(folder / name), f"/{name}"]
    for mount in job.mounts:
        if mount.target.startswith(f"{IN}/"):
            bwrap += ["--ro-bind", str(mount.source), mount.target]
    bwrap += ["--chdir", job.workdir, "--clearenv"]
    for name, value in job.env.items():
        bwrap += ["--setenv", name, value]
    places = [folder / "build" / name for name in ("src", "home", "tmp")]
    return "\n".join(
        [
            shlex.join(["mkdir", "-p", *map(str, [*places, folder / "out", folder / "ccache"])]),
            shlex.join(["tar", "--zstd", "-xf", str(tree), "-C", str(folder / "build" / "src")]),
            *([shlex.join([*bwrap, "--", "/bin/sh", "-eu", "-c", installs])] if installs else []),
            shlex.join([*bwrap, "--", *job.argv]),
            "",
        ]
    )
