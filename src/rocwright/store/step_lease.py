"""Who of many machines runs a step: the holder of a lease in the bucket, who must renew it.

A lease is void once nobody changed it for `VOID` seconds of the observer's own clock: no two machines' clocks
are compared. Two may still run one step at once (a machine that was asleep), which costs time and no more:
records are put if absent.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rocbase.errors import ExplainedError, NetworkError
from rocwright.store.bucket import Bucket
from rocwright.store.turns import FOLDER

RENEW = 30.0
VOID = 120.0
GIVE_UP = 90.0
"""Seconds without a renewal after which a holder ends what it runs: before others take the lease for void."""
LOOK = 2.0
"""Seconds between two looks at the lease of somebody else."""


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
