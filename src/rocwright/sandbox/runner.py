"""Runs a job in an engine: limits, output, outcome, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from subprocess import Popen
from threading import TIMEOUT_MAX, Event, Timer

from rocbase.errors import InputError, SandboxError
from rocbase.processes import run as process
from rocbase.processes.foreground import DEFAULTS, attend
from rocwright.sandbox import cgroup, inside, reaper, state
from rocwright.sandbox.engine import USER, Engine, Launch, Scene, host_environment, is_root, last_line
from rocwright.sandbox.layout import make_layout
from rocwright.sandbox.memory import MemoryWatch
from rocwright.sandbox.model import Ended, SandboxJob, SandboxOutcome
from rocwright.sandbox.pids import Pids
from rocwright.sandbox.pids import limit as limit_pids
from rocwright.sandbox.podman import PIDFILE
from rocwright.sandbox.untrusted import Untrusted

# Enters cgroups before the engine starts, so that no process is ever outside them.
_JOIN = 'while test "$1" != --; do echo 0 > "$1" || exit 125; shift; done; shift; exec "$@"'


def run(engine: Engine, job: SandboxJob, on_line: Callable[[str], None]) -> SandboxOutcome:
    """Run a job to its end; each line of its merged output goes to `on_line` as it comes.

    A status of 128+n is read as signal n: it is how shells, and most engines, tell of one.
    Raises SandboxError where the engine could not start the job, InputError where the job asks for what is
    not there.
    """
    token = inside.new_token()
    with _opened(engine, job, inside.told(job, token), terminal=False) as box:
        return _run(box, job, inside.Reader(token=token, on_line=on_line))


def interactive(engine: Engine, job: SandboxJob) -> int:
    """Run a job on the caller's terminal; its exit status. Only the isolation holds, not the limits."""
    with _opened(engine, job, inside.plain(job), terminal=True) as box:
        status = process.attach(box.argv, cwd=box.folder, env=host_environment(box.name))
        box.ended = status == 0
        return 128 - status if status < 0 else status


def foreground(engine: Engine, job: SandboxJob) -> int:
    """Run a program on the caller's terminal: signals that the caller is sent go on to it; its exit status.

    `engine` is bubblewrap or podman, whose processes around the program are known. Only the isolation holds,
    not the limits.
    """
    contained = engine.name != "bubblewrap"
    wrapped = replace(job, argv=(*DEFAULTS, *job.argv))
    command = inside.below_shell(wrapped) if contained else inside.plain(wrapped)
    with _opened(engine, job, command, terminal=True) as box:
        find_process = partial(_contained, box.folder / PIDFILE) if contained else _program
        status = attend(box.argv, find_process, cwd=box.folder, env=host_environment(box.name))
        box.ended = status == 0
        return _as_shell(status)


def _contained(pidfile: Path, _: int) -> int | None:
    """What runs in a container: the child of its first process, a shell. The first one heeds no signal that
    it has no handler for."""
    with contextlib.suppress(OSError, ValueError):
        inner = _children(int(pidfile.read_text()))
        return inner[0] if inner else None
    return None


def _program(launcher: int) -> int | None:
    """What runs in a bubblewrap: the child of the first process of its namespace, which is its child."""
    first = _children(launcher)
    inner = _children(first[0]) if first else []
    return inner[0] if inner else None


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def make_writable(path: Path) -> None:
    """Let a job write to a host folder or file and all in it; to be called before it is mounted writable.

    As root the job is user 1000 of the host, so the tree is given to that user. Otherwise every engine maps
    the caller to user 1000, and the caller's own files are writable as they are.
    """
    if not is_root():
        return
    if path.is_dir():
        for entry in Untrusted(path, "a step").walk(strict=False):
            _give(entry.name, entry.stat, entry.parent)
    _give(str(path), path.lstat())


def _give(name: str, status: os.stat_result, folder: int | None = None) -> None:
    if (status.st_uid, status.st_gid) != (USER, USER):
        os.chown(name, USER, USER, dir_fd=folder, follow_symlinks=False)


@dataclass(slots=True)
class _Box:
    """A sandbox under way."""

    engine: Engine
    folder: Path
    group: cgroup.Cgroup | None
    launch: Launch
    pids: Pids | None = None
    ended: bool = False
    late: Event = field(default_factory=Event)
    launcher: Popen[bytes] | None = None

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def argv(self) -> tuple[str, ...]:
        if self.group is None or not self.launch.joins_cgroup:
            return self.launch.argv
        joined = (self.group.procs, *(self.pids.procs if self.pids is not None else ()))
        return ("/bin/sh", "-c", _JOIN, "sh", *map(str, joined), "--", *self.launch.argv)

    def kill(self) -> None:
        if self.pids is not None:
            self.pids.close()
        if self.launcher is not None:
            process.kill_group(self.launcher)
        state.kill_all(self.name, self.group.folder if self.group else None)

    def expire(self) -> None:
        self.late.set()
        self.kill()

    def processes(self) -> list[int]:
        return state.marked_with(self.name)

    def crowded(self) -> bool:
        return self.pids is not None and self.pids.refused()


@contextmanager
def _opened(engine: Engine, job: SandboxJob, command: tuple[str, ...], *, terminal: bool) -> Iterator[_Box]:
    """Make a sandbox ready, and leave nothing of it."""
    reaper.ensure()
    folder = state.new_folder()
    box = None
    try:
        box = _make(engine, job, command, folder, terminal=terminal)
        _execute(box, box.launch.prepare)
        yield box
    finally:
        if box is not None and box.ended:
            _close(box)
        else:
            state.dispose(folder)


def _make(engine: Engine, job: SandboxJob, command: tuple[str, ...], folder: Path, *, terminal: bool) -> _Box:
    layout = make_layout(job, folder)
    group = cgroup.create(folder.name)
    if group is not None and job.memory is not None:
        group.limit(job.memory)
    pids = limit_pids(group, job.processes)
    scene = Scene(
        name=folder.name,
        folder=folder,
        skeleton=layout.skeleton,
        mounts=layout.mounts,
        command=command,
        network=job.network,
        devices=job.devices,
        cgroup=group.path if group else None,
        processes=job.processes,
        terminal=terminal,
        as_caller=job.as_caller,
    )
    launch = engine.launch(scene)
    state.write_record(folder, launch.undo, group)
    return _Box(engine=engine, folder=folder, group=group, launch=launch, pids=pids)


def _close(box: _Box) -> None:
    _execute(box, box.launch.finish)
    if box.group is not None:
        cgroup.kill(box.group.folder)
    state.forget(box.folder, box.group.path if box.group else None)


def _execute(box: _Box, commands: tuple[tuple[str, ...], ...]) -> None:
    for argv in commands:
        completed = process.run(argv, cwd=box.folder, env=host_environment(box.name), timeout=120)
        if not completed.ok:
            raise SandboxError(
                f"{box.engine.name} could not set up the sandbox",
                cause=last_line(completed.stderr) or f"{argv[0]} ended with status {completed.returncode}",
                next_step="rocwright sandbox shows which engines work here and why the others do not",
                detail=completed.stderr.strip(),
            )


def _run(box: _Box, job: SandboxJob, reader: inside.Reader) -> SandboxOutcome:
    start = time.monotonic()
    timer = Timer(TIMEOUT_MAX if job.seconds is None else job.seconds, box.expire)
    timer.daemon = True

    def started(launcher: Popen[bytes]) -> None:
        box.launcher = launcher
        timer.start()

    counted = box.group if box.launch.counted else None
    watch = MemoryWatch(
        counted, limit=job.memory, pids=box.processes, crowded=box.crowded, on_excess=box.kill
    )
    with watch, contextlib.ExitStack() as stack:
        stack.callback(timer.cancel)
        env = host_environment(box.name)
        completed = process.stream(
            box.argv, reader.line, cwd=box.folder, env=env, on_start=started, on_error=reader.error
        )
    # anything else may be an engine that was ended, which removes nothing
    box.ended = completed.returncode == 0 and not box.late.is_set()
    code = _as_shell(completed.returncode)
    if not reader.begun and not box.late.is_set() and not (watch.exhausted or watch.crowded):
        raise _nowhere(job) if reader.nowhere else _no_start(box, completed.returncode, [*reader.noise])
    ended = _ended(box, watch, code)
    killed = ended is Ended.SIGNALLED and code - 128 == signal.SIGKILL
    return SandboxOutcome(
        ended=ended,
        code=code - 128 if _signal(code) else code,
        seconds=time.monotonic() - start,
        peak_memory=watch.peak,
        stalled=watch.stalled,
        maybe_memory=killed and counted is None and watch.elsewhere,
    )


def _ended(box: _Box, watch: MemoryWatch, code: int) -> Ended:
    if box.late.is_set():
        return Ended.TIMED_OUT
    # also where a pipeline swallowed it and ended well: what was made then is not to be trusted
    if watch.exhausted:
        return Ended.OUT_OF_MEMORY
    if watch.crowded:
        return Ended.TOO_MANY_PROCESSES
    return Ended.SIGNALLED if _signal(code) else Ended.EXITED


def _as_shell(returncode: int) -> int:
    return 128 - returncode if returncode < 0 else returncode


def _signal(code: int) -> bool:
    return code - 128 in {int(number) for number in signal.valid_signals()}


def _nowhere(job: SandboxJob) -> InputError:
    return InputError(
        f"there is no folder {job.workdir} in the sandbox",
        cause=f"neither the root {job.root} nor a mount has it",
        next_step="mount a folder there, or run the job in another folder",
    )


def _no_start(box: _Box, returncode: int, noise: list[str]) -> SandboxError:
    return SandboxError(
        f"{box.engine.name} could not start the job",
        cause=last_line("\n".join(noise)) or f"it ended with status {returncode} and no message",
        next_step="rocwright sandbox shows which engines work here and why the others do not; "
        "--engine chooses another",
        detail="\n".join(noise[-20:]),
    )
