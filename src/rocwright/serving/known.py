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
from rocwright.bases.roots import is_as_it_was
from rocwright.catalog.server import GPU, Server
from rocwright.home import Home
from rocwright.machine.memory import read_memory
from rocwright.machine.tree import Tree
from rocwright.records.model import now
from rocwright.sandbox.model import Mount, SandboxJob
from rocwright.serving import state
from rocwright.serving.launch import Launch, boxed, new_mark
from rocwright.serving.model import ServerState
from rocwright.serving.models.fit import free_memory
from rocwright.serving.ports import is_free


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
    if any(one.is_dir() for one in paths):
        return None
    return tuple(_stamp(one) for one in paths)


def _stamp(path: Path) -> Stamp:
    told = path.stat()
    return Stamp(
        path=str(path),
        device=told.st_dev,
        inode=told.st_ino,
        size=told.st_size,
        mtime=told.st_mtime_ns,
        ctime=told.st_ctime_ns,
    )


def remember(
    home: Home,
    asked: str,
    launch: Launch,
    lock: Path,
    model: Sequence[Stamp],
    *,
    most: int,
    card: bool,
    said: Sequence[str],
) -> None:
    """Keep a start that went well, of a server without a key that runs in a sandbox."""
    job = launch.job
    if job is None or launch.key:
        return
    files = {str(Path(one.path).resolve()) for one in model}
    sources = [str(one.source) for one in job.mounts]
    known = GoodStart(
        lock=str(lock),
        sha256=sha256_file(lock),
        root=str(job.root),
        folders=tuple(one for one in sources if one not in files),
        model=tuple(model),
        most=most,
        card=card,
        said=tuple(said),
        argv=job.argv,
        env=dict(job.env),
        shown=tuple(
            ServerMount(source=str(one.source), target=one.target, writable=one.writable)
            for one in job.mounts
        ),
        devices=job.devices,
        server=launch.server,
        state=launch.state,
    )
    write_atomic(_note(home, asked), known.model_dump_json() + "\n", mode=0o600)


def recall(home: Home, asked: str) -> GoodStart | None:
    """What was started for the same; None where nothing was, or any of it is another by now."""
    with contextlib.suppress(OSError, ValidationError):
        known = GoodStart.model_validate_json(_note(home, asked).read_bytes())
        same = (
            sha256_file(Path(known.lock)) == known.sha256
            and all(Path(one).exists() for one in (*known.folders, *known.devices))
            and all(_stamp(Path(one.path)) == one for one in known.model)
            and is_as_it_was(Path(known.root))
        )
        return known if same else None
    return None


def relaunch(home: Home, asked: str, *, stays: bool, say: Callable[[str], None]) -> Launch | None:
    """What was started for the same, ready to be started again; what can change unseen is checked again.

    None where nothing stands, its name or port is taken, or the memory does not hold the model now: what
    finds that out in the long way says it. Raises CheckError for a card that cannot be used any more.
    """
    known = recall(home, asked)
    if known is None:
        return None
    left = state.read(home, known.state.name)
    if (left is not None and state.runs(left)) or not is_free(known.state.host, known.state.port):
        return None
    room = _checked_room(home, known, say) if known.card else _free()
    if room < known.most:
        return None
    for line in known.said:
        say(line)
    return _launch(home, known, stays=stays)


def _free() -> int:
    with Tree() as tree:
        memory = read_memory(tree)
    return free_memory(memory) if memory is not None else 0


def _checked_room(home: Home, known: GoodStart, say: Callable[[str], None]) -> int:
    """The memory for the model where the card is in this machine, whose driver and rights are looked at."""
    from rocwright.catalog.load import the_catalog
    from rocwright.serving import check

    catalog, target = the_catalog(), known.state.gpu[0]
    machine = check.machine_here(catalog, home)
    check.check_machine(machine, catalog, known.state.stack, target, say)
    room = check.room_here(machine, target if known.state.on == GPU else "")
    return room.bytes if room is not None else 0


def _launch(home: Home, known: GoodStart, *, stays: bool) -> Launch:
    name = known.state.name
    state.forget(home, name)
    state.claim(home, name)
    job = SandboxJob(
        root=Path(known.root),
        argv=known.argv,
        env=known.env,
        mounts=tuple(
            Mount(source=Path(one.source), target=one.target, writable=one.writable) for one in known.shown
        ),
        network=True,
        devices=known.devices,
    )
    mark = new_mark(name)
    for one in known.folders:
        if Path(one).parent == home.programs:
            os.utime(one)  # its last use, for clean
    try:
        ready = boxed(job, home, name, mark, stays=stays)
    except BaseException:
        state.forget(home, name)
        raise
    fresh = {"mark": mark, "boot": state.boot_id(), "begun": now(), "command": ready.argv, "ending": False}
    kept = known.state.model_copy(update={**fresh, "pid": 0, "start": 0})
    return Launch(state=kept, argv=ready.argv, env=dict(ready.env), server=known.server, job=job)


def _note(home: Home, asked: str) -> Path:
    return home.programs / "asked" / f"{asked}.json"
