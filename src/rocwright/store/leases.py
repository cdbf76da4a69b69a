"""What builds that run now need: a clean-up leaves it alone, from their first look to their last file."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from rocbase.files.atomic import write_atomic
from rocwright.store.layout import StoreLayout
from rocwright.store.model import is_key


@contextlib.contextmanager
def holding(layout: StoreLayout, steps: Mapping[str, str], on_wait: Callable[[], None]) -> Iterator[None]:
    """A build that has to do with these steps, keys to names, for as long as it runs.

    It begins when no clean-up is removing anything; `on_wait` is called where one is. The lock of a build
    that was killed is free, so its word is void.
    """
    path = layout.builds / f"{os.getpid()}-{time.monotonic_ns()}.json"
    lock = FileLock(path.with_suffix(".lock"))
    with cleaning(layout, on_wait):
        lock.acquire()
        write_atomic(path, json.dumps(dict(steps), sort_keys=True))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()
        path.with_suffix(".lock").unlink(missing_ok=True)


@contextlib.contextmanager
def cleaning(layout: StoreLayout, on_wait: Callable[[], None]) -> Iterator[None]:
    """While something is removed: no build begins, and no other clean-up."""
    lock = layout.lock("clean")
    try:
        lock.acquire(timeout=0.1)
    except Timeout:
        on_wait()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def held(layout: StoreLayout) -> dict[Path, dict[str, str]]:
    """The steps of each running build, by the file that has them; a build that was killed holds none."""
    steps = {}
    for lock in layout.builds.glob("*.lock"):
        if not is_free(FileLock(lock)):
            steps[lock.with_suffix(".json")] = _steps(lock.with_suffix(".json"))
    return steps


def forget_killed(layout: StoreLayout) -> None:
    """Remove what builds left that were killed; to be called while `cleaning`."""
    running = held(layout)
    for path in layout.builds.iterdir():
        if path.with_suffix(".json") not in running:
            path.unlink(missing_ok=True)


def _steps(path: Path) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return {key: str(name) for key, name in json.loads(path.read_text()).items() if is_key(key)}
    return {}


@contextlib.contextmanager
def ours(locks: Iterable[FileLock]) -> Iterator[bool]:
    """Whether nobody else holds any of the locks; they are held until the end."""
    with contextlib.ExitStack() as stack:
        try:
            for lock in locks:
                stack.enter_context(lock.acquire(blocking=False))
        except Timeout:
            yield False
            return
        yield True


def is_free(lock: FileLock) -> bool:
    """Whether nobody holds it."""
    with ours([lock]) as free:
        return free
