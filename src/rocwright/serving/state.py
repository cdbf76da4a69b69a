"""Which servers were started here, and which of them run."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from pydantic import ValidationError

from rocbase.errors import InputError
from rocbase.files.atomic import write_atomic
from rocbase.folders.removal import remove_tree
from rocbase.processes.outlive import boot_id
from rocbase.processes.owner import Owner
from rocbase.units import printable
from rocwright.home import Home
from rocwright.sandbox import lasting
from rocwright.serving import container
from rocwright.serving.model import KEY_FILE, NAME, SOUND, ServerState

_STATE, _LOG, _BOX = "server.json", "log", "box"


def check_name(name: str) -> None:
    """Raise InputError for what no server can be called, such as a path: its folder is made, and removed."""
    if not is_name(name):
        raise InputError(
            f"{printable(name[:80])!r} is not a name of a server",
            cause="it has at most 63 small letters, digits, dots, dashes and underscores, and begins with a "
            "letter or a digit",
            next_step="name it otherwise, such as my-server; rocwright ps shows those that were started",
        )


def is_name(name: str) -> bool:
    """Whether a server can be called so."""
    return bool(re.fullmatch(NAME, name))


def folder_of(home: Home, name: str) -> Path:
    """Where all of a server lies: its state, log, key, and what it runs in. Raises InputError for what is no
    name of one."""
    check_name(name)
    return home.servers / name


def log_of(home: Home, name: str) -> Path:
    """What it prints."""
    return folder_of(home, name) / _LOG


def key_of(home: Home, name: str) -> Path:
    """The key that it asks for, where it asks for one."""
    return folder_of(home, name) / KEY_FILE


def box_of(home: Home, name: str) -> Path:
    """The mount points and settings of its sandbox."""
    return folder_of(home, name) / _BOX


def sound_of(home: Home, name: str) -> Path:
    """What it is asked about first, where it hears."""
    return folder_of(home, name) / SOUND


def claim(home: Home, name: str) -> Path:
    """A new folder for a server of that name. Raises InputError where one of that name is there."""
    folder = folder_of(home, name)
    home.servers.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError as error:
        raise name_in_use(name) from error
    return folder


def name_in_use(name: str) -> InputError:
    """The refusal of a name that another server has."""
    return InputError(
        f"{name} is running already",
        cause="a server of that name was started here and has not been stopped",
        next_step=f"rocwright stop {name}, or give the new one another name: --name {name}-2",
    )


def keep(home: Home, state: ServerState) -> None:
    """Write what is known of a server, whole or not at all."""
    path = folder_of(home, state.name) / _STATE
    write_atomic(path, state.model_dump_json(indent=2) + "\n", mode=0o600)


def read(home: Home, name: str) -> ServerState | None:
    """What was kept of a server; None where there is none, or it cannot be read."""
    with contextlib.suppress(OSError, ValidationError):
        return ServerState.model_validate_json((folder_of(home, name) / _STATE).read_bytes())
    return None


def servers(home: Home) -> list[ServerState]:
    """Every server that was started and not stopped, by name; whether each runs is `runs`."""
    names = sorted(path.name for path in home.servers.glob("*") if path.is_dir() and is_name(path.name))
    return [state for name in names if (state := read(home, name)) is not None]


def prepared(home: Home, name: str) -> bool:
    """Whether something was laid out under that name that was not started: by --dry-run, or before a kill."""
    return folder_of(home, name).is_dir() and not (folder_of(home, name) / _STATE).exists()


def runs(state: ServerState) -> bool:
    """Whether it runs now: the process that was started, and none that has its number since."""
    if state.boot != boot_id():
        return False
    if state.place != "host":
        return container.runs(state.place, state.mark)
    if state.pid:
        return Owner(pid=state.pid, start=state.start).alive()
    # rocwright was killed between starting it and writing down what it had started
    return bool(lasting.processes(state.mark))


def forget(home: Home, name: str) -> None:
    """Remove all of a server that does not run."""
    remove_tree(folder_of(home, name))
