"""Those who work with a store at the same time.

On one machine, locks in its folder: a clean-up leaves alone what builds that run now need, from their first
look to their last file. In a bucket, leases below `leases/`, for which no two machines' clocks are compared.

The holder of the lease of a step runs it and renews the lease, which is void once nobody changed it for
`VOID` seconds of the observer's own clock. Two may still run one step at once (a machine that was asleep),
which costs time and no more: records are put if absent.

Many may put things into a bucket at once, or one may clean up, never both. Each puts a lease before it looks
for those of others, so that of two that begin at once at least one sees the other. Their ages are those of
the bucket's own clock.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from rocbase.errors import ExplainedError, InputError, NetworkError
from rocbase.files.atomic import write_atomic
from rocwright.store.bucket import Bucket
from rocwright.store.local import StoreLayout
from rocwright.store.model import Peer, Store, is_key

# on one machine


def _layout(store: Store) -> StoreLayout:
    return StoreLayout(store.local.path)


@contextlib.contextmanager
def holding(
    store: Store, steps: Mapping[str, str], on_wait: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """A build that has to do with these steps, keys to names, for as long as it runs: no clean-up takes what
    they need.

    It begins when no clean-up is removing anything; `on_wait` is called where one is. The lock of a build
    that was killed is free, so its word is void.
    """
    layout = _layout(store)
    path = layout.builds / f"{os.getpid()}-{time.monotonic_ns()}.json"
    lock = FileLock(path.with_suffix(".lock"))
    with _cleaning_lock(layout, on_wait):
        lock.acquire()
        write_atomic(path, json.dumps(dict(steps), sort_keys=True))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()
        path.with_suffix(".lock").unlink(missing_ok=True)


@contextlib.contextmanager
def _cleaning_lock(layout: StoreLayout, on_wait: Callable[[], None]) -> Iterator[None]:
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


@contextlib.contextmanager
def cleaning(store: Store) -> Iterator[None]:
    """While something is removed: no build begins, and no other clean-up. Removes what builds left that were
    killed."""
    layout = _layout(store)
    with _cleaning_lock(layout, lambda: None):
        alive = _held(layout)
        for path in layout.builds.iterdir():
            if path.with_suffix(".json") not in alive:
                path.unlink(missing_ok=True)
        yield


def running(store: Store) -> list[dict[str, str]]:
    """The steps of each build that runs now, keys to names; a build that was killed has none."""
    return [*_held(_layout(store)).values()]


def _held(layout: StoreLayout) -> dict[Path, dict[str, str]]:
    """The steps of each running build, by the file that has them."""
    steps = {}
    for lock in layout.builds.glob("*.lock"):
        if not _is_free(FileLock(lock)):
            steps[lock.with_suffix(".json")] = _steps(lock.with_suffix(".json"))
    return steps


def _steps(path: Path) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return {key: str(name) for key, name in json.loads(path.read_text()).items() if is_key(key)}
    return {}


def locked_steps(store: Store) -> set[str]:
    """The keys of steps that run now, or whose shell is open."""
    layout = _layout(store)
    return {name for name in filter(is_key, layout.locks()) if not _is_free(layout.lock(name))}


def claimed(store: Store, key: str) -> AbstractContextManager[bool]:
    """Whether nobody works on the step of that key, or on one whose key begins so; nobody begins to until the
    end."""
    layout = _layout(store)
    return ours(map(layout.lock, [key] if is_key(key) else layout.locks(key)))


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


def _is_free(lock: FileLock) -> bool:
    with ours([lock]) as free:
        return free


# of a step, here and on other machines


@contextlib.contextmanager
def locked(store: Store, key: str) -> Iterator[None]:
    """While nobody else runs the step of that key: here, or where others build in the same bucket."""
    peer = _built_in(store)
    with _layout(store).lock(key):
        if peer is None:
            yield
            return

        def wait() -> None:
            peer.say(f"{key[:12]} runs on another machine, or ran on one that is gone: waiting")

        with leased(peer.bucket, key, wait):
            yield


def abandon(store: Store, key: str) -> None:
    """The machine that had the lock of that step is gone: nobody waits for it any more. If it is there after
    all, it finds that the lease is not its own, and ends."""
    if (peer := _built_in(store)) is not None:
        peer.bucket.remove(lease_name(key))


def leased(bucket: Bucket, key: str, on_wait: Callable[[], None]) -> AbstractContextManager[None]:
    """While nobody else runs what has this key; `on_wait`, which may raise, is called where somebody does.
    This process is asked to end where it is not ours any more."""
    return step_lease(bucket, key, on_wait=on_wait, on_lost=lambda: os.kill(os.getpid(), signal.SIGTERM))


def _built_in(store: Store) -> Peer | None:
    """The store of other machines that this one builds in, if it does."""
    return next((peer for peer in store.shared if peer.bucket.url == store.url), None)


RENEW = 30.0
VOID = 120.0
# Seconds without a renewal after which a holder ends what it runs: before others take the lease for void.
GIVE_UP = 90.0
# Seconds between two looks at the lease of somebody else.
LOOK = 2.0


def lease_name(key: str) -> str:
    """Where the lease of a step lies."""
    return f"{FOLDER}/step-{key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The clock, in seconds, and how one waits by it; a wait is cut short by an event."""

    clock: Callable[[], float] = time.monotonic
    wait: Callable[[threading.Event, float], bool] = threading.Event.wait


@dataclass(slots=True)
class _Held:
    bucket: Bucket
    name: str
    times: Times
    on_lost: Callable[[], None]
    token: bytes = field(default_factory=lambda: secrets.token_hex(16).encode())
    tag: str | None = None
    renewed: float = 0
    lost: str = ""
    ended: threading.Event = field(default_factory=threading.Event)

    def take(self, on_wait: Callable[[], None]) -> None:
        """Wait until it is ours. Raises NetworkError, InputError."""
        last_tag, since, notified = "", self.times.clock(), False
        while not self.bucket.add(self.name, self.token):
            tag = self.bucket.tag(self.name)
            if tag is None:
                continue
            if tag != last_tag:
                last_tag, since = tag, self.times.clock()
            elif self.times.clock() - since >= VOID and self._renew(tag):
                return
            if not notified:
                notified = True
                on_wait()
            self.times.wait(self.ended, LOOK)
        self.tag, self.renewed = self.bucket.tag(self.name), self.times.clock()

    def _renew(self, tag: str | None) -> bool:
        """Put our token over the version with `tag`; the next version is known by the answer alone, since
        another machine may write before it could be looked up."""
        updated = self.bucket.update(self.name, self.token, tag) if tag is not None else None
        if updated is not None:
            self.tag, self.renewed = updated, self.times.clock()
        return updated is not None

    def keep(self) -> None:
        """Renew it until it is ended; tell where that is not possible any more."""
        while not self.times.wait(self.ended, RENEW):
            try:
                if not self._renew(self.tag):
                    self.lost = "another machine took it"
            except ExplainedError as error:
                if self.times.clock() - self.renewed >= GIVE_UP:
                    self.lost = f"it could not be renewed for {GIVE_UP:.0f} s: {error.message}"
            if self.lost:
                self.on_lost()
                return

    def give_back(self) -> None:
        with contextlib.suppress(ExplainedError):
            if self.bucket.get(self.name, 64) == self.token:
                self.bucket.remove(self.name)


@contextlib.contextmanager
def step_lease(
    bucket: Bucket,
    key: str,
    *,
    on_wait: Callable[[], None] = lambda: None,
    on_lost: Callable[[], None] = lambda: None,
    times: Times | None = None,
) -> Iterator[None]:
    """While the step of that key is ours. `on_wait` is called where another machine has it, `on_lost`, by
    another thread, where it is not ours any more: what runs must end then.

    Raises NetworkError where the lease was lost, whatever ended the work.
    """
    lease = _Held(bucket, lease_name(key), times or Times(), on_lost)
    lease.take(on_wait)
    keeper = threading.Thread(target=lease.keep, name=f"lease-{key[:8]}", daemon=True)
    keeper.start()
    try:
        yield
    except (ExplainedError, KeyboardInterrupt) as error:
        if lease.lost:
            raise NetworkError(
                f"the lease of the step {key[:12]} was lost",
                cause=lease.lost,
                next_step=f"nothing, if another machine runs it; else look at {bucket}",
            ) from error
        raise
    finally:
        lease.ended.set()
        keeper.join()
        if not lease.lost:
            lease.give_back()


# of a whole bucket

FOLDER = "leases"
# Seconds after which a lease that was not renewed is that of a process that was killed.
LIFE = 3600.0
RENEW_TURN = LIFE / 6

Role = Literal["push", "clean"]


@dataclass(slots=True)
class Turn:
    """A lease that is held; `renew` is called between things that take time."""

    bucket: Bucket
    name: str
    renewed: float = field(default_factory=time.monotonic)

    def renew(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Put the lease again, where its last time is a while ago."""
        if clock() - self.renewed > RENEW_TURN:
            self.bucket.replace(self.name, b"")
            self.renewed = clock()


@contextlib.contextmanager
def turn(bucket: Bucket, role: Role) -> Iterator[Turn]:
    """While one pushes or cleans up. Raises InputError where the others have their turn."""
    name = f"{FOLDER}/{role}-{secrets.token_hex(8)}"
    bucket.add(name, b"")
    try:
        leases = [entry for entry in bucket.list(FOLDER) if entry.name != name]
        clock = next((entry.written for entry in bucket.list(FOLDER) if entry.name == name), 0.0)
        live = [entry for entry in leases if clock - entry.written < LIFE]
        # those who push do not get in each other's way
        against = [entry for entry in live if role == "clean" or entry.name.startswith(f"{FOLDER}/clean-")]
        if against:
            others = "cleans it up" if "/clean-" in against[0].name else "pushes to it"
            raise InputError(
                f"{bucket} is in use: somebody {others}",
                cause="files may only be removed while nobody adds any",
                next_step="run the command again when that has ended; a lease of a killed process ends after "
                f"{LIFE / 60:.0f} minutes",
            )
        yield Turn(bucket, name)
    finally:
        with contextlib.suppress(ExplainedError):
            bucket.remove(name)
