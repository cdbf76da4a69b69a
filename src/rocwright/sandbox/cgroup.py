"""A memory cgroup of a sandbox's own, of version 1 or 2: limit, peak, out of memory, and a sure kill."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rocbase.processes import run as process

MOUNT = Path("/sys/fs/cgroup")

# Environment variable that names the cgroup, made by `create_above`, below which others are to be made.
ABOVE = "ROCWRIGHT_CGROUP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cgroup:
    """A cgroup folder. `path` is its name below the hierarchy, as container engines take it.

    `bound` is what the cgroup that it stands beside leaves of its limit, in bytes: it holds for this one too.
    """

    folder: Path
    path: str
    version: int
    bound: int | None = None

    @property
    def procs(self) -> Path:
        return self.folder / "cgroup.procs"

    def used(self) -> int:
        """Bytes that cannot be dropped under pressure: anonymous and shared memory."""
        stat = table(self.folder / "memory.stat")
        if self.version == 1:
            return stat.get("total_rss", 0) + stat.get("total_shmem", 0)
        return stat.get("anon", 0) + stat.get("shmem", 0)

    def most(self) -> int:
        """A lower bound of the peak of `used`, from the kernel's own peak less the file cache now held."""
        name = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
        stat = table(self.folder / "memory.stat")
        cache = stat.get("total_cache", 0) if self.version == 1 else stat.get("file", 0)
        shared = stat.get("total_shmem" if self.version == 1 else "shmem", 0)
        return max(0, _number(self.folder / name) - (cache - shared))

    def limit(self, memory: int) -> None:
        """Let the processes have `memory` bytes, or `bound` where that is less, and no swap.

        Raises OSError where the kernel refuses.
        """
        memory = memory if self.bound is None else min(memory, self.bound)
        names = (
            ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
            if self.version == 1
            else ("memory.max", "memory.swap.max")
        )
        (self.folder / names[0]).write_text(str(memory))
        with contextlib.suppress(OSError):
            (self.folder / names[1]).write_text(str(memory if self.version == 1 else 0))

    def oom_kills(self) -> int:
        """Processes that the kernel killed for memory so far, here and below, by whichever limit it was.

        It counts those whom a cgroup above or the whole machine had no room for, too. Version 1 counts each
        cgroup by itself (and kernels before 4.13 do not), version 2 with those below.
        Source: Linux, Documentation/admin-guide/cgroup-v2.rst, memory.events.
        """
        if self.version == 2:
            return table(self.folder / "memory.events").get("oom_kill", 0)
        tables = (table(folder / "memory.oom_control") for folder in here_and_below(self.folder))
        return sum(table.get("oom_kill", 0) for table in tables)

    def major_faults(self) -> int:
        """Pages that had to be read from a disk so far, here and below."""
        stat = table(self.folder / "memory.stat")
        return stat.get("total_pgmajfault" if self.version == 1 else "pgmajfault", 0)

    def members(self) -> frozenset[int]:
        """The processes here and below."""
        return _members(self.folder)

    def most_used(self) -> int | None:
        """Bytes that `used` is no more than: all that counts, the file cache too; cheap to read. None where
        the kernel does not say."""
        text = _text(self.folder / ("memory.usage_in_bytes" if self.version == 1 else "memory.current"))
        return int(text) if text.strip().isdigit() else None

    def most_allowed(self) -> int | None:
        """The limit in bytes, None where there is none."""
        text = _text(self.folder / ("memory.limit_in_bytes" if self.version == 1 else "memory.max")).strip()
        return int(text) if text.isdigit() else None

    def met_limit(self) -> bool:
        """Whether it ever was as large as its own limit, but for some pages (version 1)."""
        peak, limit = (_number(self.folder / f"memory.{name}_in_bytes") for name in ("max_usage", "limit"))
        return 0 < limit <= peak + 2**20

    def watch(self) -> int | None:
        """An event descriptor that turns readable at the first lack of memory here or above (version 1)."""
        if self.version != 1:
            return None
        event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            with (self.folder / "memory.oom_control").open() as control:
                (self.folder / "cgroup.event_control").write_text(f"{event} {control.fileno()}")
        except OSError:
            os.close(event)
            return None
        return event


def _members(folder: Path) -> frozenset[int]:
    return frozenset(
        int(word) for group in here_and_below(folder) for word in _text(group / "cgroup.procs").split()
    )


def here_and_below(folder: Path) -> Iterator[Path]:
    """The folders of a cgroup and of those below it."""
    with contextlib.suppress(OSError):
        # a folder's links are its name, itself and each folder in it (Linux, fs/kernfs/inode.c)
        if folder.stat().st_nlink == 2:
            yield folder
            return
    yield from (Path(path) for path, _, _ in os.walk(folder))


def places(name: str) -> list[Cgroup]:
    """Where a cgroup `name` of this process could be, best first: below its own, or beside it."""
    candidates = []
    for hierarchy, own, version in _hierarchies():
        parents = [own] if version == 1 else [own, own.parent]
        if above := os.environ.get(ABOVE):
            parents = [*(parent / above for parent in parents), *parents]
        for parent in dict.fromkeys(parents):
            folder = hierarchy / parent.relative_to("/") / name
            sibling = parent == own.parent != own
            bound = _room_in(hierarchy / own.relative_to("/")) if sibling else None
            candidates.append(Cgroup(folder=folder, path=str(parent / name), version=version, bound=bound))
    return candidates


def _room_in(folder: Path) -> int | None:
    """What a cgroup of version 2 leaves of its limit, in bytes; None where it has none."""
    text = _text(folder / "memory.max").strip()
    if not text.isdigit():
        return None
    return max(0, int(text) - Cgroup(folder=folder, path="", version=2).used())


def create(name: str) -> Cgroup | None:
    """A new cgroup `name`; None where none may be made."""
    for place in places(name):
        limit = place.folder / ("memory.limit_in_bytes" if place.version == 1 else "memory.max")
        with contextlib.suppress(OSError):
            place.folder.mkdir()
            if os.access(limit, os.W_OK) and os.access(place.procs, os.W_OK):
                # below a cgroup with processes version 2 has no room: what is left of its limit goes along
                if place.bound is not None:
                    place.limit(place.bound)
                return place
            place.folder.rmdir()
    return None


def create_above(name: str) -> Cgroup | None:
    """A new cgroup `name` without processes of its own, for sandboxes' cgroups below it; None where none
    may be made.

    Those who make sandboxes find it by its name in the environment variable `ABOVE`.
    """
    group = create(name)
    if group is not None:
        # version 1 on old kernels: only then does a limit hold for what lies below; version 2: so that it
        # counts too
        switch = (
            ("memory.use_hierarchy", "1") if group.version == 1 else ("cgroup.subtree_control", "+memory")
        )
        with contextlib.suppress(OSError):
            (group.folder / switch[0]).write_text(switch[1])
        if group.version == 2:
            with contextlib.suppress(OSError):
                (group.folder / switch[0]).write_text("+pids")
    return group


def _hierarchies() -> list[tuple[Path, Path, int]]:
    """Mount point, this process's cgroup, and version of each hierarchy that may count memory."""
    hierarchies = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if "memory" in controllers.split(","):
                hierarchies.append((MOUNT / "memory", Path(path), 1))
            elif not controllers and unified():
                hierarchies.append((MOUNT, Path(path), 2))
    return hierarchies


def unified() -> bool:
    """True where the machine has cgroups of version 2 alone."""
    return (MOUNT / "cgroup.controllers").exists()


def kill(folder: Path) -> None:
    """SIGKILL all processes in a cgroup and below, until none is left (at most some seconds)."""
    for _ in range(100):
        pids = _members(folder)
        if not pids:
            return
        process.send(signal.SIGKILL, pids, lambda: _members(folder))
        time.sleep(0.02)


def remove(path: str) -> None:
    """Remove the cgroup `path` and those below it from every hierarchy, once it is empty."""
    for folder in folders(path):
        for subfolder, _, _ in os.walk(folder, topdown=False):
            _remove_one(Path(subfolder))


def folders(path: str) -> list[Path]:
    """Return the folders of the cgroup `path` in every hierarchy: engines use others than that of memory."""
    hierarchies = [MOUNT, *(child for child in _children(MOUNT) if child.is_dir() and not child.is_symlink())]
    candidates = [(hierarchy, hierarchy / path.lstrip("/")) for hierarchy in hierarchies]
    return [folder for hierarchy, folder in candidates if folder != hierarchy and folder.is_dir()]


def _remove_one(folder: Path) -> None:
    for _ in range(50):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)
        else:
            return


def _children(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return list(folder.iterdir())
    return []


def _text(path: Path) -> str:
    # asked many times a second: `Path.read_text` takes three times as long
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return b"".join(iter(lambda: os.read(descriptor, 65536), b"")).decode()
        finally:
            os.close(descriptor)
    return ""


def _number(path: Path) -> int:
    text = _text(path).strip()
    return int(text) if text.isdigit() else 0


def table(path: Path) -> dict[str, int]:
    """A file of lines that are a name and a number; what is none is left out."""
    lines = (line.split() for line in _text(path).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()}
