"""The file systems that a build writes to: what is free on each, and the word before one is full."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

from rocbase.errors import ExplainedError, OutOfDiskError
from rocbase.units import size
from rocwright.config import store_folder
from rocwright.execution.workspace import Workspace
from rocwright.home import Home
from rocwright.model.steps import Step
from rocwright.plan.decide import Decision, State
from rocwright.store.gc import folder_size

# Seconds between two looks: a link writes some 100 MB in that time.
PERIOD = 0.2

# Bytes that are left free on a file system, and no more than `SHARE` of a small one.
RESERVE = 512 * 1024**2

# Bytes beyond the reserve from which on a file system is looked at this seldom, in seconds.
FAR, SELDOM = 16 * 1024**3, 1.0

RESERVE_INODES = 10_000
SHARE = 50

ROOM = (
    "free some disk space (rocwright clean --dry-run lists what can be removed), "
    "or set ROCWRIGHT_HOME to a larger disk"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A file system: what lies on it and where; bytes and inodes, in all and free. `inodes` is 0 where the
    file system makes them as they are needed.
    """

    what: tuple[str, ...]
    path: Path
    device: int
    total: int
    free: int
    inodes: int
    inodes_free: int

    @property
    def reserve(self) -> int:
        return min(RESERVE, self.total // SHARE)

    @property
    def far_from_full(self) -> bool:
        """Whether nothing fills it within some seconds."""
        few = self.inodes and self.inodes_free < 100 * RESERVE_INODES
        return self.free - self.reserve >= FAR and not few

    @property
    def nearly_full(self) -> str:
        """What of it is used up but for the reserve, in words; empty while there is room."""
        if self.free < self.reserve:
            return f"{size(self.free)} of {size(self.total)} are left"
        if self.inodes_free < min(RESERVE_INODES, self.inodes // SHARE):
            return f"{self.inodes_free:,} of {self.inodes:,} inodes are left"
        return ""

    def __str__(self) -> str:
        return f"the disk of {self.path} ({', '.join(self.what)})"


def places(home: Home) -> dict[str, Path]:
    """What a build writes, and where."""
    return {
        "build folders": home.work,
        "the store": store_folder(home),
        "unpacked roots": home.roots,
        "the compiler cache": home.compiler_caches,
        "logs": home.runs,
        "temporary files": Path(tempfile.gettempdir()),
    }


def storage_of(engine: str | None, home: Home) -> dict[str, Path]:
    """Where the engine that a build uses keeps its images; nothing for one that keeps none."""
    from rocwright.sandbox import ENGINES, pick

    if engine is not None and engine in ENGINES and not ENGINES[engine].keeps_images:
        return {}
    from rocwright.diagnosis.facts import host_facts
    from rocwright.diagnosis.machine.rooms import storages
    from rocwright.diagnosis.machine.tree import Tree

    with contextlib.suppress(ExplainedError), Tree() as tree:
        name = pick(engine, home.probes).name
        locations = storages(tree, host_facts(), os.geteuid(), str(Path.home()))
        return {label: Path(path) for label, path in locations if name in label.split()}
    return {}


def volumes(paths: Mapping[str, Path]) -> tuple[Volume, ...]:
    """Each file system once, with all that lies on it; folders that are not there yet lie where they will."""
    by_device: dict[int, Volume] = {}
    for label, path in paths.items():
        existing = path if path.exists() else next(folder for folder in path.parents if folder.exists())
        stats, device = os.statvfs(existing), existing.stat().st_dev
        previous = by_device.get(device)
        by_device[device] = Volume(
            what=(*(previous.what if previous else ()), label),
            path=previous.path if previous else existing,
            device=device,
            total=stats.f_blocks * stats.f_frsize,
            free=stats.f_bavail * stats.f_frsize,
            inodes=stats.f_files,
            inodes_free=stats.f_favail,
        )
    return tuple(by_device.values())


def check_room(decisions: Sequence[Decision], home: Home) -> int:
    """The bytes that the steps to run are known to need. Raises OutOfDiskError where they are not free, or
    where a file system that a build writes to is full but for its reserve."""
    to_run = [decision.step for decision in decisions if decision.state is State.RUN]
    needed = sum(step.resources.disk for step in to_run)
    home.path.mkdir(parents=True, exist_ok=True)
    work, *_ = volumes({"build folders": home.work})
    if needed and needed + work.reserve > work.free:
        raise OutOfDiskError(
            f"this build needs about {size(needed)} on the disk of {home.path}; {size(work.free)} are free",
            cause=", ".join(
                f"{step.name} {size(step.resources.disk)}"
                for step in sorted(to_run, key=lambda step: -step.resources.disk)[:4]
                if step.resources.disk
            ),
            next_step=ROOM,
            subject=str(home.path),
        )
    for volume in volumes(places(home)):
        if needed and volume.nearly_full:
            raise OutOfDiskError(
                f"{volume} is full: {volume.nearly_full}",
                cause="a build that starts now would run out of disk space",
                next_step=how_to_free(volume, home),
                subject=str(volume.path),
            )
    return needed


def how_to_free(volume: Volume, home: Home) -> str:
    """What makes room on that file system: clearing the home folder helps only the disk that holds it."""
    if volume.device == home.path.stat().st_dev:
        return ROOM
    if volume.path == Path(tempfile.gettempdir()):
        return f"free some room in {volume.path}, or set TMPDIR to a folder on another disk"
    return f"free some room on the disk of {volume.path}"


@dataclass(slots=True, kw_only=True)
class DiskWatch:
    """Looks at the file systems while steps run. `on_full` is called once, before one of them is full; `say`
    where what is free may not do for what the running steps are known to need. Once `full` is found,
    `written` is what each running step had written by then, `gone` what that file system lost since the
    begin, in bytes."""

    where: Mapping[str, Path]
    home: Home
    running: Callable[[], Sequence[Step]]
    on_full: Callable[[], None]
    say: Callable[[str], None]
    full: Volume | None = None
    written: dict[str, int] = field(default_factory=dict)
    gone: int = 0
    _free: dict[int, int] = field(default_factory=dict)
    _period: float = PERIOD
    _said: set[int] = field(default_factory=set)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Look until left."""
        self._free = {volume.device: volume.free for volume in volumes(self.where)}
        stop = Event()
        thread = Thread(target=self._watch, args=(stop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def look(self) -> Volume | None:
        """The file system that is nearly full, if one is or was."""
        if self.full is None:
            with contextlib.suppress(OSError):
                current = volumes(self.where)
                self._period = SELDOM if all(volume.far_from_full for volume in current) else PERIOD
                full = next((volume for volume in current if volume.nearly_full), None)
                if full is not None:
                    self.gone = self._free.get(full.device, full.free) - full.free
                    self.written = {step.name: written(step, self.home) for step in self.running()}
                self.full = full
        return self.full

    def _watch(self, stop: Event) -> None:
        while not stop.wait(self._period):
            if self.look() is not None:
                self.on_full()
                return
            with contextlib.suppress(OSError):
                self._foresee()

    def _foresee(self) -> None:
        """Say once, of the disk with the build folders, that what is still needed may not fit."""
        steps = self.running()
        work = self.where.get("build folders", self.home.work)
        volume = next(iter(volumes({"build folders": work})), None)
        if volume is None or volume.device in self._said:
            return
        free = volume.free - volume.reserve
        # looking into the folders takes time: only where it may matter
        if sum(step.resources.disk for step in steps) <= free:
            return
        needed = sum(still_needed(step, self.home) for step in steps)
        if needed > free:
            self._said.add(volume.device)
            self.say(
                f"  disk: {size(volume.free)} are free in {volume.path}, and the running steps may need "
                f"{size(needed)} more; the build stops cleanly before the disk is full"
            )


def written(step: Step, home: Home) -> int:
    """Bytes in the folder of a running step."""
    return folder_size(Workspace.of(home, step.key).path)


def still_needed(step: Step, home: Home) -> int:
    """Bytes that a running step is known to need beyond what its folder has."""
    return max(0, step.resources.disk - written(step, home))


def stopped(watch: DiskWatch, volume: Volume, step: Step, *, folder: Path | None) -> OutOfDiskError:
    """The error of a step that was ended before the disk was full."""
    remains = f"its folder is kept: {folder}" if folder else "its folder is removed"
    return OutOfDiskError(
        f"stopped before {volume} was full: {volume.nearly_full}",
        cause=f"{_culprit(watch, volume, step)}; {remains}",
        next_step=f"{how_to_free(volume, watch.home)}; then run again: finished steps are kept",
        subject=str(volume.path),
    )


def _culprit(watch: DiskWatch, volume: Volume, step: Step) -> str:
    """Who wrote most of what filled the disk: this step, another that ran beside it, or something else."""
    mine = watch.written.get(step.name, 0)
    estimate = f", and was known to need {size(step.resources.disk)}" if step.resources.disk else ""
    own = f"this step had written {size(mine)}{estimate}"
    if "build folders" not in volume.what:
        return f"build folders are on another disk ({own}): temporary files or other programs filled this one"
    largest, most_bytes = max(watch.written.items(), key=lambda pair: pair[1], default=(step.name, mine))
    if sum(watch.written.values()) < watch.gone // 2:
        return (
            f"{size(watch.gone)} went since the build began, most of it not to its steps "
            f"({own}): another program fills the disk"
        )
    return own if largest == step.name else f"{largest} had written {size(most_bytes)} of it ({own})"
