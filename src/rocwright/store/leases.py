"""What builds that run now need: a clean-up leaves it alone, from their first look to their last file."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from rocwright.files.atomic import write_atomic
from rocwright.store.local import LocalStore, is_key


@contextlib.contextmanager
def holding(
    store: LocalStore, steps: Mapping[str, str], on_wait: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """A build that has to do with these steps, names by keys, for as long as it runs.

    It begins when no clean-up is removing anything; `on_wait` is called where one is. The lock of a build
    that was killed is free, so its word is void.
    """
    path = _folder(store) / f"{os.getpid()}-{time.monotonic_ns()}.json"
    lock = FileLock(path.with_suffix(".lock"))
    with cleaning(store, on_wait):
        lock.acquire()
        write_atomic(path, json.dumps(dict(steps), sort_keys=True))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()
        path.with_suffix(".lock").unlink(missing_ok=True)


@contextlib.contextmanager
def cleaning(store: LocalStore, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """While something is removed: no build begins, and no other clean-up."""
    lock = store.lock("clean")
    try:
        lock.acquire(timeout=0.1)
    except Timeout:
        on_wait()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def held(store: LocalStore) -> dict[Path, dict[str, str]]:
    """The steps of each running build, by the file that has them; a build that was killed holds none."""
    found = {}
    for lock in _folder(store).glob("*.lock"):
        if not _is_free(lock):
            found[lock.with_suffix(".json")] = _steps(lock.with_suffix(".json"))
    return found


def forget_killed(store: LocalStore) -> None:
    """Remove what builds left that were killed; to be called while `cleaning`."""
    running = held(store)
    for path in _folder(store).iterdir():
        if path.with_suffix(".json") not in running:
            path.unlink(missing_ok=True)


def _folder(store: LocalStore) -> Path:
    folder = store.path / "builds"
    folder.mkdir(exist_ok=True)
    return folder


def _steps(path: Path) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return {key: str(name) for key, name in json.loads(path.read_text()).items() if is_key(key)}
    return {}


def _is_free(path: Path) -> bool:
    try:
        with FileLock(path).acquire(blocking=False):
            return True
    except Timeout:
        return False
