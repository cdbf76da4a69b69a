"""Who works in a bucket: many may put things there at once, or one may clean up, never both.

Each puts a lease before it looks for those of others, so that of two that begin at once at least one sees
the other. Ages are told by the bucket's own clock: no two machines' clocks are compared.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from rocbase.errors import ExplainedError, InputError
from rocwright.store.bucket import Bucket

FOLDER = "leases"
LIFE = 3600.0
"""Seconds after which a lease that was not renewed is that of a process that was killed."""
RENEW = LIFE / 6

Role = Literal["push", "clean"]


@dataclass(slots=True)
class Turn:
    """A lease that is held; `renew` is called between things that take time."""

    bucket: Bucket
    name: str
    renewed: float = field(default_factory=time.monotonic)

    def renew(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Put the lease again, where its last time is a while ago."""
        if clock() - self.renewed > RENEW:
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
            raise InputError(
                f"{bucket} is in use: {_reason(against[0].name)}",
                cause="files may only be removed while nobody adds any",
                next_step="run the command again when that has ended; a lease of a killed process ends after "
                f"{LIFE / 60:.0f} minutes",
            )
        yield Turn(bucket, name)
    finally:
        with contextlib.suppress(ExplainedError):
            bucket.remove(name)


def _reason(name: str) -> str:
    return "somebody cleans it up" if name.startswith(f"{FOLDER}/clean-") else "somebody pushes to it"
