"""What the last start of a server came to, so that the next for the same words need not choose, lock, plan
and look again. It stands while nothing that it was found by changes; what may change unseen is asked anew.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from rocbase.files.atomic import sha256_file, write_atomic
from rocbase.model import Frozen
from rocbase.processes.outlive import boot_id
from rocwright.catalog.server import GPU, Server
from rocwright.diagnosis.machine.memory import read_memory
from rocwright.diagnosis.machine.tree import Tree
from rocwright.home import Home
from rocwright.records.model import now
from rocwright.sandbox.model import Mount, SandboxJob
from rocwright.serving import state
from rocwright.serving.launch import Launch, boxed, new_mark
from rocwright.serving.model import ServerState
from rocwright.serving.models.fit import free_memory
from rocwright.serving.ports import is_free
from rocwright.sources.bases.roots import is_as_it_was


class Stamp(Frozen):
    """A file that was looked at: no byte of it changes without one of these numbers."""

    path: str
    device: int
    inode: int
    size: int
    mtime: int
    ctime: int


class ServerMount(Frozen):
    """A file or folder that the server sees at `target`."""

    source: str
    target: str
    writable: bool


class GoodStart(Frozen):
    """A start that went well.

    `lock` is the file that it was planned from, with its digest; `folders` must be there, and `root` be as it
    was unpacked; `model` are files that were looked at. `most` is what the model takes at most, in bytes.
    `card` says that the GPU is in this machine, which is checked again. `said` was said of it. The rest is
    what is started.
    """

    lock: str
    sha256: str
    root: str
    folders: tuple[str, ...]
    model: tuple[Stamp, ...] = ()
    most: int = 0
    card: bool
    said: tuple[str, ...]
    argv: tuple[str, ...]
    env: dict[str, str]
    shown: tuple[ServerMount, ...]
    devices: tuple[str, ...]
    server: Server
    state: ServerState


def stamps(paths: Sequence[Path]) -> tuple[Stamp, ...] | None:
    """Files as they are now; None where one is a folder, in which files change without it. Raises OSError."""
    if any(path.is_dir() for path in paths):
        return None
    return tuple(_stamp(path) for path in paths)


def _stamp(path: Path) -> Stamp:
    stat = path.stat()
    return Stamp(
        path=str(path),
        device=stat.st_dev,
        inode=stat.st_ino,
        size=stat.st_size,
        mtime=stat.st_mtime_ns,
        ctime=stat.st_ctime_ns,
    )


def remember(
    home: Home,
    digest: str,
    launch: Launch,
    lock: Path,
    model: Sequence[Stamp],
    *,
    memory: int,
    card: bool,
    messages: Sequence[str],
) -> None:
    """Keep a start that went well, of a server without a key that runs in a sandbox."""
    job = launch.job
    if job is None or launch.key:
        return
    files = {str(Path(stamp.path).resolve()) for stamp in model}
    sources = [str(mount.source) for mount in job.mounts]
    start = GoodStart(
        lock=str(lock),
        sha256=sha256_file(lock),
        root=str(job.root),
        folders=tuple(source for source in sources if source not in files),
        model=tuple(model),
        most=memory,
        card=card,
        said=tuple(messages),
        argv=job.argv,
        env=dict(job.env),
        shown=tuple(
            ServerMount(source=str(mount.source), target=mount.target, writable=mount.writable)
            for mount in job.mounts
        ),
        devices=job.devices,
        server=launch.server,
        state=launch.state,
    )
    write_atomic(_note(home, digest), start.model_dump_json() + "\n", mode=0o600)


def recall(home: Home, digest: str) -> GoodStart | None:
    """What was started for the same; None where nothing was, or any of it is another by now."""
    with contextlib.suppress(OSError, ValidationError):
        start = GoodStart.model_validate_json(_note(home, digest).read_bytes())
        unchanged = (
            sha256_file(Path(start.lock)) == start.sha256
            and all(Path(path).exists() for path in (*start.folders, *start.devices))
            and all(_stamp(Path(stamp.path)) == stamp for stamp in start.model)
            and is_as_it_was(Path(start.root))
        )
        return start if unchanged else None
    return None


def relaunch(home: Home, digest: str, *, stays: bool, say: Callable[[str], None]) -> Launch | None:
    """What was started for the same, ready to be started again; what can change unseen is checked again.

    None where nothing stands, its name or port is taken, or the memory does not hold the model now: what
    finds that out in the long way says it. Raises CheckError for a card that cannot be used any more.
    """
    start = recall(home, digest)
    if start is None:
        return None
    previous = state.read(home, start.state.name)
    if (previous is not None and state.runs(previous)) or not is_free(start.state.host, start.state.port):
        return None
    room = _checked_room(home, start, say) if start.card else _free()
    if room < start.most:
        return None
    for line in start.said:
        say(line)
    return _launch(home, start, stays=stays)


def _free() -> int:
    with Tree() as tree:
        memory = read_memory(tree)
    return free_memory(memory) if memory is not None else 0


def _checked_room(home: Home, start: GoodStart, say: Callable[[str], None]) -> int:
    """The memory for the model where the card is in this machine, whose driver and rights are looked at."""
    from rocwright.catalog.load import the_catalog
    from rocwright.serving import check

    catalog, target = the_catalog(), start.state.gpu[0]
    machine = check.machine_here(catalog, home)
    check.check_machine(machine, catalog, start.state.stack, target, say)
    room = check.room_here(machine, target if start.state.on == GPU else "")
    return room.bytes if room is not None else 0


def _launch(home: Home, start: GoodStart, *, stays: bool) -> Launch:
    name = start.state.name
    state.forget(home, name)
    state.claim(home, name)
    job = SandboxJob(
        root=Path(start.root),
        argv=start.argv,
        env=start.env,
        mounts=tuple(
            Mount(source=Path(mount.source), target=mount.target, writable=mount.writable)
            for mount in start.shown
        ),
        network=True,
        devices=start.devices,
    )
    mark = new_mark(name)
    for folder in start.folders:
        if Path(folder).parent == home.programs:
            os.utime(folder)  # its last use, for clean
    try:
        ready = boxed(job, home, name, mark, stays=stays)
    except BaseException:
        state.forget(home, name)
        raise
    fresh = {"mark": mark, "boot": boot_id(), "begun": now(), "command": ready.argv, "ending": False}
    server_state = start.state.model_copy(update={**fresh, "pid": 0, "start": 0})
    return Launch(state=server_state, argv=ready.argv, env=dict(ready.env), server=start.server, job=job)


def _note(home: Home, digest: str) -> Path:
    return home.programs / "asked" / f"{digest}.json"
