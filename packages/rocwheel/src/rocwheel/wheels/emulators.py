"""Emulators of GPUs, and whether a process runs in one: it sees no GPU then, whatever that is called."""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePosixPath

from rocbase.model import Frozen
from rocbase.toml.read import Reader, parse
from rocwheel.tables import data_folders

PROC = Path("/proc")
TABLE = "emulators.toml"


class Races(Frozen):
    """Where an emulator reports races: a file in its folder, how a line begins of one in LDS, and of any."""

    file: str
    lds: str
    race: str


class Emulator(Frozen):
    """How an emulator is known and started; the words are those of emulators.toml.

    `packages` say where it is to be had, `configurations` are files by GPU target, `lacks` tells of targets
    why it has none, `threads` is the name in a configuration of how many threads it takes.
    """

    name: str
    mapped: str
    program: str
    library: str
    places: tuple[str, ...] = ()
    packages: tuple[str, ...]
    version: tuple[str, ...]
    arguments: tuple[str, ...]
    own: str
    env: dict[str, str] = {}
    races: Races
    threads: str
    configurations: dict[str, str]
    lacks: dict[str, str] = {}
    source: tuple[str, ...]


class EmulatorsFile(Frozen):
    """emulators.toml."""

    emulator: tuple[Emulator, ...] = ()


@cache
def emulators() -> tuple[Emulator, ...]:
    """Every emulator that is known."""
    reader = Reader(data_folders())
    tables = [parse(EmulatorsFile, reader.data(path), path) for path in reader.layers(TABLE)]
    return tuple({emulator.name: emulator for table in tables for emulator in table.emulator}.values())


def emulator_of(pid: int | str = "self", proc: Path = PROC) -> str:
    """The library of an emulator that a process has mapped, as a path; "" where it has none, or is gone."""
    try:
        return emulator_in((proc / str(pid) / "maps").read_text(errors="replace"))
    except OSError:
        return ""


def emulator_in(maps: str) -> str:
    """The same, of what the kernel tells of a process's mappings."""
    # address, rights, offset, device, inode, and a path that may hold blanks: proc_pid_maps(5)
    paths = (line.split(maxsplit=5)[5:] for line in maps.splitlines())
    return next((path for columns in paths for path in columns if _is_emulator(path)), "")


def emulator_below(pid: int, proc: Path = PROC) -> str:
    """The same of any process that a process has started, and of those that they have."""
    children: dict[int, list[int]] = {}
    for process in proc.iterdir():
        if process.name.isdigit() and (parent := _parent(process)) is not None:
            children.setdefault(parent, []).append(int(process.name))
    descendants, emulator = [pid], ""
    while descendants and not emulator:
        descendants = [child for parent_pid in descendants for child in children.get(parent_pid, ())]
        emulator = next(filter(None, (emulator_of(child, proc) for child in descendants)), "")
    return emulator


def _parent(process: Path) -> int | None:
    try:
        status = (process / "stat").read_text(errors="replace")
    except OSError:
        return None
    # the name, in brackets, may hold anything; the state and the parent come after it: proc_pid_stat(5)
    return int(status.rpartition(")")[2].split()[1])


def _is_emulator(path: str) -> bool:
    name = PurePosixPath(path).name
    return path.startswith("/") and any(name.startswith(emulator.mapped) for emulator in emulators())
