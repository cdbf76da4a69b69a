"""What a sandbox leaves on the machine, and its removal, by its owner or by whoever outlives the owner.

Each sandbox has a folder whose name carries the owner's process id and start time. The folder holds the
skeleton and a record of the commands that undo the sandbox; it is there before anything else and goes last.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import ExplainedError, SandboxError
from rocbase.folders.removal import remove_tree
from rocbase.processes import outlive
from rocbase.processes import run as process
from rocbase.processes.owner import Owner as Owner
from rocbase.processes.owner import start_time as start_time
from rocbase.processes.owner import this_process as this_process
from rocwright.sandbox import cgroup
from rocwright.sandbox.engine import MARK, host_environment

_RECORD = "record.json"
_count = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    undo: list[list[str]]
    cgroup: dict[str, str] | None


def home() -> Path:
    """The folder of all sandboxes of this user. Raises SandboxError where it is another user's."""
    if set_by_user := os.environ.get("ROCWRIGHT_RUNTIME_DIR"):
        folder = Path(set_by_user)
    elif os.geteuid() == 0:
        folder = Path("/run/rocwright")
    elif runtime := os.environ.get("XDG_RUNTIME_DIR"):
        folder = Path(runtime) / "rocwright"
    else:
        folder = Path(f"/tmp/rocwright-{os.geteuid()}")  # noqa: S108 - its owner and mode are checked below
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        raise SandboxError(
            f"{folder} belongs to another user",
            cause="the folder for running sandboxes must belong to you",
            next_step="remove it, or set ROCWRIGHT_RUNTIME_DIR to a folder that belongs to you",
        )
    return folder


def new_folder() -> Path:
    """A fresh folder for one sandbox; its name is the sandbox's name."""
    owner = this_process()
    folder = home() / f"{outlive.SANDBOX}-{owner.pid}-{owner.start}-{next(_count)}"
    folder.mkdir(mode=0o700)
    return folder


def owner_of(name: str) -> Owner | None:
    """The owner that a sandbox's name tells."""
    owner = outlive.owner_of(name)
    return Owner(pid=owner[0], start=owner[1]) if owner else None


def write_record(folder: Path, undo: tuple[tuple[str, ...], ...], group: cgroup.Cgroup | None) -> None:
    """Keep what undoes the sandbox; to be called before the first command is run."""
    record = {"undo": undo, "cgroup": group and {"folder": str(group.folder), "path": group.path}}
    temporary = folder / f"{_RECORD}.new"
    temporary.write_text(json.dumps(record))
    temporary.replace(folder / _RECORD)


def dispose(folder: Path) -> None:
    """Kill all that runs in a sandbox, undo what its engine did, and remove its folder. May be repeated."""
    record = _read_record(folder)
    group = record.cgroup["path"] if record.cgroup else None
    _kill_everywhere(folder.name, group)
    for argv in record.undo:
        _undo(argv, folder.name)
    # what an engine had begun to start has no mark, and its database forgets it at once
    _kill_everywhere(folder.name, group)
    forget(folder, group)


def _kill_everywhere(name: str, group: str | None) -> None:
    kill_all(name, None)
    for folder in cgroup.folders(group) if group else ():
        cgroup.kill(folder)


def _undo(argv: list[str], name: str) -> None:
    """Run a command, again if need be: what was just killed may hold its mounts for some moments more."""
    for wait in (0.05, 0.1, 0.2, 0.4, 0.8, 0.0):
        with contextlib.suppress(ExplainedError):
            if process.run(argv, env=host_environment(name), timeout=60).ok:
                return
        time.sleep(wait)


def forget(folder: Path, group: str | None) -> None:
    """Remove the cgroup and the folder of a sandbox in which nothing runs."""
    paths = {place.path for place in cgroup.places(folder.name)} | ({group} if group else set())
    for path in paths:
        cgroup.remove(path)
    _unmount_below(folder)
    remove_tree(folder)


def kill_all(name: str, group: Path | None) -> None:
    """SIGKILL the processes that carry a sandbox's mark, and those in its cgroup."""
    for _ in range(100):
        marked = _marked(name)
        process.send(signal.SIGKILL, marked, lambda: _marked(name))
        if not marked:
            break
        time.sleep(0.02)
    if group is not None:
        cgroup.kill(group)


def cgroup_of(name: str) -> Path | None:
    """The cgroup folder of sandbox `name`; None where it has none, or is not there."""
    group = _read_record(home() / name).cgroup
    return Path(group["folder"]) if group else None


def marked_with(name: str) -> list[int]:
    """Processes that carry the mark of sandbox `name`."""
    return _marked(name)


def sweep() -> list[str]:
    """Remove the sandboxes whose owner is gone; their names."""
    removed = []
    for folder in sorted(home().iterdir()):
        owner = owner_of(folder.name)
        if owner is not None and not owner.alive():
            dispose(folder)
            removed.append(folder.name)
    return removed


def _read_record(folder: Path) -> _Record:
    with contextlib.suppress(OSError, ValueError):
        return _Record(**json.loads((folder / _RECORD).read_text()))
    return _Record(undo=[], cgroup=None)


def _marked(name: str) -> list[int]:
    mark = f"{MARK}={name}".encode()
    pids = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in Path(entry.path, "environ").read_bytes().split(b"\0"):
                    pids.append(int(entry.name))
    return pids


def _unmount_below(folder: Path) -> None:
    """Detach mounts below a folder before it is removed: what is mounted there is not ours to remove."""
    with contextlib.suppress(OSError):
        points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for point in sorted(points, reverse=True):
            if point.startswith(f"{folder}/"):
                process.run(("umount", "-l", point))
