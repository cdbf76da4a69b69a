"""A look at a folder: what is new in it is read, what went is forgotten."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from filelock import FileLock
from packaging.utils import canonicalize_version

from rocwheel.processes.python import safe_children
from rocwheel.wheels.index.cache import Cache
from rocwheel.wheels.index.examine import Problem, Seen, Wheel, examine
from rocwheel.wheels.index.scan import YANKS, look_at, scan

FEW_FILES = 200
FEW_BYTES = 256 * 1024**2
"""Up to here one process reads the new files: starting others takes longer."""

BATCH = 250
"""Files that one process is given at a time."""

BATCH_BYTES = 512 * 1024**2

Examined = tuple[Seen, Wheel | Problem]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a look at a folder found: files read, files gone, wheels listed, files left out."""

    read: int
    gone: int
    listed: int
    problems: tuple[Problem, ...]


def refresh(
    folder: Path,
    cache: Cache,
    progress: Callable[[int, int], None] = lambda done, of: None,
    *,
    changed: Iterable[Path] = (),
) -> Look:
    """Bring the cache up to what `folder` holds now. `progress` is told files read, of how many.

    With `changed` these files alone are looked at, which came, changed or went since: all are where no look
    at the whole folder has ended yet. What is read is kept at once: after a kill the next look goes on from
    there. Raises InputError.
    """
    with FileLock(cache.path.with_suffix(".lock")):
        files = tuple(changed)
        if files and cache.whole:
            found, left_out, paths = look_at(folder, files)
            return _refresh(folder, cache, progress, found, left_out, cache.seen(paths))
        found, left_out = scan(folder)
        look = _refresh(folder, cache, progress, found, left_out, cache.seen())
        cache.set_whole()
        return look


def _refresh(
    folder: Path,
    cache: Cache,
    progress: Callable[[int, int], None],
    found: list[Seen],
    left_out: list[Problem],
    known: set[tuple[str, int, int, int]],
) -> Look:
    new = [one for one in found if one not in known]
    # a file that is another by now is gone, and new
    gone = [one[0] for one in known.difference(found)]
    yanks = _yanks(folder)
    if new or gone or yanks != cache.yanks():
        with cache.transaction():
            revision = cache.next_revision()
            cache.drop(gone, revision)
            cache.set_yanks(yanks, revision)
        done = 0
        for batch in _examined(folder, new):
            with cache.transaction():
                cache.keep([one for one in batch if _lasts(one[1])], revision)
            left_out += [one for _, one in batch if isinstance(one, Problem) and not one.lasting]
            done += len(batch)
            progress(done, len(new))
    return Look(
        read=len(new),
        gone=len(gone),
        listed=cache.count(),
        problems=(*left_out, *cache.problems(), *_unused(cache, yanks)),
    )


def _lasts(found: Wheel | Problem) -> bool:
    return not isinstance(found, Problem) or found.lasting


def _yanks(folder: Path) -> dict[tuple[str, str], str]:
    if not (folder / YANKS).exists():
        return {}
    # its readers are worth importing only here
    from rocwheel.wheels.index.yanks import read_yanks

    return dict(read_yanks(folder))


def _unused(cache: Cache, yanks: dict[tuple[str, str], str]) -> Iterator[Problem]:
    for project, version in yanks:
        if not any(canonicalize_version(one.wheel.version) == version for one in cache.wheels(project)):
            yield Problem(YANKS, f"it yanks {project} {version}, but the folder has no such wheel")


def _examined(folder: Path, new: Sequence[Seen]) -> Iterator[list[Examined]]:
    """What was read of each file, in batches, in any order."""
    batches = list(_batches(new))
    size = sum(one.size for one in new)
    jobs = min(len(os.sched_getaffinity(0)), len(batches))
    if jobs < 2 or (len(new) <= FEW_FILES and size <= FEW_BYTES):
        for batch in batches:
            yield _examine_all(folder, batch)
        return
    spawn = get_context("spawn")
    with safe_children(), ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_leave_ctrl_c) as pool:
        try:
            waiting = {pool.submit(_examine_all, folder, batch) for batch in batches}
            while waiting:
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for one in ready:
                    yield one.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _batches(new: Sequence[Seen]) -> Iterator[list[Seen]]:
    batch: list[Seen] = []
    size = 0
    for one in new:
        if batch and (len(batch) == BATCH or size + one.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += one.size
    if batch:
        yield batch


def _examine_all(folder: Path, batch: Sequence[Seen]) -> list[Examined]:
    return [(one, examine(folder, one)) for one in batch]


def _leave_ctrl_c() -> None:
    """Ctrl-C is for the process that was started by hand; it ends these."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
