"""The processes of the steps under way: what each is, and what memory it has."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from hashlib import blake2s
from pathlib import Path
from typing import Annotated

from pydantic import Field

from rocbase.errors import ExplainedError
from rocbase.model import Frozen
from rocbase.processes import run as process
from rocbase.toml.read import Reader
from rocwright.catalog.folders import catalog_folders
from rocwright.execution.jobs.room import text
from rocwright.sandbox import state

TABLE = "job_kinds.toml"

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = os.sysconf("SC_CLK_TCK")
# Seconds between two searches of all processes for a sandbox's mark, where it has no cgroup.
_MARKS = 2.0


# Where compilers put what they hand to each other.
_PASSING = ("/tmp/", "/var/tmp/")  # noqa: S108  names in a command line, nothing is opened


# The number of a process, and when it started.
ProcessName = tuple[int, int]


class ProcessKind(StrEnum):
    """The closed set of what a process does, as far as its memory is concerned.

    OTHER waits for others, or is small, or is not known: it is counted, and never paused.
    """

    COMPILE = "compile"
    LINK = "link"
    LTO = "lto"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProcess:
    """A process inside a step's sandbox. `started` is in clock ticks since boot (with `pid` it tells a
    process from a later one with its number), `memory` (anonymous and shared) and its `peak` in bytes,
    `parent` is who started it, `threads` their number, `cpu` the seconds that it worked, `paused` whether a
    signal stopped it, `ready` whether it wants a processor, or a disk, at this moment. `area` is the sum of
    its memory times seconds of a processor until now, `unit` a name for what it compiles or links, the same
    in each build, `program` the kernel's name for it, of 15 letters at most.
    """

    pid: int
    started: int
    step: str
    memory: int
    kind: ProcessKind
    parent: int = 0
    threads: int = 1
    paused: bool = False
    ready: bool = False
    peak: int = 0
    cpu: float = 0
    area: float = 0
    unit: str = ""
    program: str = ""

    @property
    def name(self) -> ProcessName:
        """Return what tells it from a later process with its number."""
        return self.pid, self.started


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What one look found: the processes, those that have ended since the one before, with their peaks as
    seen, and the cgroup folders of the sandboxes."""

    seen: tuple[StepProcess, ...] = ()
    ended: tuple[StepProcess, ...] = ()
    groups: tuple[Path, ...] = ()


class Program(Frozen):
    """Programs by name, with wildcards as the shell has them: what they do, and, where `holding` is given, do
    only with a word that begins so on their command line."""

    kind: ProcessKind
    names: Annotated[tuple[str, ...], Field(min_length=1)]
    holding: tuple[str, ...] = ()
    source: Annotated[str, Field(min_length=1)]


class Programs(Frozen):
    """job_kinds.toml."""

    program: tuple[Program, ...] = ()

    def kind(self, name: str, words: list[str]) -> ProcessKind:
        """What a process does, by the first row that fits."""
        for row in self.program:
            if any(fnmatchcase(name, pattern) for pattern in row.names) and (
                not row.holding or any(word.startswith(row.holding) for word in words)
            ):
                return row.kind
        return ProcessKind.OTHER


def unit_of(words: Sequence[str]) -> str:
    """A name for what a command works on, from its line: of its inputs, outputs and values, without options
    (they change with versions) and files that have another name each time."""
    lasting = [word for word in words[1:] if word and not word.startswith(("-", *_PASSING))]
    return blake2s("\0".join(lasting).encode(errors="replace"), digest_size=8).hexdigest()


@cache
def programs() -> Programs:
    """Of the catalog in use, the topmost folder's rows first. Raises InputError where it is at fault."""
    reader = Reader(catalog_folders())
    tables = [reader.model(Programs, reader.data(path), path) for path in reader.layers(TABLE)]
    return Programs(program=tuple(row for table in reversed(tables) if table for row in table.program))


@dataclass(slots=True)
class Watch:
    """Looks at the processes again and again, and keeps what does not change. For one thread.

    Raises InputError, when it is made, where the catalog's table is at fault.
    """

    _programs: Programs = field(default_factory=programs)
    _folders: dict[str, Path | None] = field(default_factory=dict)
    _before: dict[tuple[int, int], StepProcess] = field(default_factory=dict)
    _kinds: dict[tuple[int, int, str], tuple[ProcessKind, str]] = field(default_factory=dict)
    _marked: dict[str, tuple[float, list[int]]] = field(default_factory=dict)

    def read(self, owners: Mapping[int, str]) -> Sight:
        """All processes in the sandboxes of some steps: `owners` has each exec-step's process id, with its
        step's name. Processes that end meanwhile are left out. Never raises."""
        boxes = [(name, owners[owner]) for name, owner in _boxes() if owner in owners]
        folders = self._folders = {
            name: self._folders.get(name) or state.cgroup_of(name) for name, _ in boxes
        }
        stats: dict[int, tuple[_Stat, str]] = {}
        for name, step in boxes:
            folder = folders[name]
            # some engines keep a container out of the sandbox's own cgroup
            for pid in (folder and _members(folder)) or self._marked_processes(name):
                stat = _stat(pid)
                if stat is not None:
                    stats[pid] = stat, step
        parents = {stat.parent for stat, _ in stats.values()}
        processes = [self._observed(pid, stat, step, pid in parents) for pid, (stat, step) in stats.items()]
        current = {(process.pid, process.started): process for process in processes}
        ended = tuple(process for name, process in self._before.items() if name not in current)
        self._before = current
        self._kinds = {key: kind for key, kind in self._kinds.items() if key[:2] in current}
        return Sight(
            seen=tuple(processes), ended=ended, groups=tuple(folder for folder in folders.values() if folder)
        )

    def _observed(self, pid: int, stat: _Stat, step: str, waits: bool) -> StepProcess:
        memory = _memory(pid)
        kind, unit = self._kind(pid, stat, waits)
        previous = self._before.get((pid, stat.started))
        peak = max(memory, previous.peak if previous is not None else 0)
        return StepProcess(
            pid=pid,
            started=stat.started,
            step=step,
            memory=memory,
            kind=kind,
            parent=stat.parent,
            threads=stat.threads,
            paused=stat.state == "T",
            ready=stat.state in {"R", "D"},
            peak=peak if kind is ProcessKind.OTHER else max(peak, _peak(pid)),
            cpu=stat.cpu,
            area=memory * stat.cpu
            if previous is None
            else previous.area + memory * (stat.cpu - previous.cpu),
            unit=unit,
            program=stat.name,
        )

    def _kind(self, pid: int, stat: _Stat, waits: bool) -> tuple[ProcessKind, str]:
        """What it is, and the name of its unit. One that has had processes of its own drives them: it is no
        compiler, whatever its name."""
        key = (pid, stat.started, stat.name)
        if waits:
            self._kinds[key] = ProcessKind.OTHER, ""
        classified = self._kinds.get(key)
        if classified is None:
            words = text(f"/proc/{pid}/cmdline").split("\0")
            # a name is cut to 15 letters by the kernel; a script has that of its interpreter
            name = words[0].rpartition("/")[2] or stat.name
            classified = self._programs.kind(name, words[1:]), unit_of(words)
            # a process that is starting a program has its name, and no words yet
            if any(words):
                self._kinds[key] = classified
        return classified

    def _marked_processes(self, name: str) -> set[int]:
        """Processes that are in no cgroup of their sandbox: those that carry its mark, and their children."""
        timestamp, marked = self._marked.get(name, (0.0, []))
        clock = time.monotonic()
        if clock - timestamp > _MARKS or not marked:
            marked = state.marked_with(name)
            self._marked[name] = clock, marked
        pids: set[int] = set()
        waiting = list(marked)
        while waiting:
            pid = waiting.pop()
            if pid not in pids:
                pids.add(pid)
                waiting += [int(word) for word in text(f"/proc/{pid}/task/{pid}/children").split()]
        return pids


@dataclass(frozen=True, slots=True)
class _Stat:
    name: str
    state: str
    parent: int
    cpu: float
    threads: int
    started: int


def _boxes() -> list[tuple[str, int]]:
    """The sandboxes of this user, each with its owner's process id."""
    try:
        names = [entry.name for entry in os.scandir(state.home())]
    except (OSError, ExplainedError):
        return []
    owners = [(name, state.owner_of(name)) for name in names]
    return [(name, owner.pid) for name, owner in owners if owner is not None]


def _members(folder: Path) -> set[int]:
    """The processes of a cgroup and of those below it."""
    return {int(word) for path, _, _ in os.walk(folder) for word in text(f"{path}/cgroup.procs").split()}


def _stat(pid: int) -> _Stat | None:
    """None for a process that is gone, or awaits its parent (proc(5), /proc/pid/stat)."""
    head, _, tail = text(f"/proc/{pid}/stat").rpartition(")")
    fields = tail.split()
    if len(fields) < 20 or fields[0] in {"Z", "X"}:
        return None
    return _Stat(
        name=head.partition("(")[2],
        state=fields[0],
        parent=int(fields[1]),
        cpu=(int(fields[11]) + int(fields[12])) / _TICK,
        threads=int(fields[17]),
        started=int(fields[19]),
    )


def _peak(pid: int) -> int:
    """What was resident at most, also between two looks, less what is a file's now."""
    status = text(f"/proc/{pid}/status")
    columns = [status.partition(name)[2].split(maxsplit=1)[:1] for name in ("VmHWM:", "RssFile:")]
    peak, files = (int(words[0]) if words else 0 for words in columns)
    return max(0, peak - files) * 1024


def _memory(pid: int) -> int:
    """What is resident and no file's: what cannot be dropped."""
    fields = text(f"/proc/{pid}/statm").split()
    return (int(fields[1]) - int(fields[2])) * _PAGE if len(fields) > 2 else 0


def send(number: signal.Signals, to: Iterable[StepProcess]) -> None:
    """Send a signal to processes, never to later ones that have their numbers by now."""
    targets = tuple(to)
    process.send(
        number,
        (target.pid for target in targets),
        lambda: {target.pid for target in targets if state.start_time(target.pid) == target.started},
    )
