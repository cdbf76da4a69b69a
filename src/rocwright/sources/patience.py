"""How long sources may be silent, where somebody said so: a host is waited for once, not each time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from rocbase.errors import NetworkError
from rocbase.units import duration

# Seconds for which a host that was silent is not asked again.
REMEMBERED = 300.0


@dataclass(slots=True)
class Patience:
    """`seconds` that a source may take; which hosts were silent that long, and when. Threads may share it."""

    seconds: float
    silent: dict[str, float] = field(default_factory=dict)


# From so many seconds on, what is silent is asked again as usual: nobody is in a hurry.
USUAL = 30.0


def bounded(seconds: float) -> Patience | None:
    """The patience of who wants to wait only so long; None for who waits as long as usual."""
    return Patience(seconds) if seconds < USUAL else None


_CURRENT: ContextVar[Patience | None] = ContextVar("patience", default=None)


def current() -> Patience | None:
    """What was said, in this thread; None: each kind of source has its own patience, and is tried again."""
    return _CURRENT.get()


@contextmanager
def with_patience(patience: Patience | None) -> Iterator[None]:
    """Everything asked in here is asked with this patience; None changes nothing."""
    if patience is None:
        yield
        return
    token = _CURRENT.set(patience)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def within(seconds: float) -> float:
    """How long a source may take that may usually take `seconds`."""
    patience = current()
    return seconds if patience is None else min(seconds, patience.seconds)


@contextmanager
def asked(address: str) -> Iterator[None]:
    """A host is asked in here. Raises NetworkError at once where it was silent just before."""
    patience = current()
    if patience is None:
        yield
        return
    host = urlsplit(address).netloc.rpartition("@")[2] or address
    start = time.monotonic()
    if start - patience.silent.get(host, -REMEMBERED) < REMEMBERED:
        raise NetworkError(
            f"{host} is not asked again",
            cause=f"it was silent for {duration(patience.seconds)} just before",
            next_step="check the network, or wait longer for it (--seconds)",
        )
    try:
        yield
    except NetworkError:
        if time.monotonic() - start >= 0.9 * patience.seconds:
            patience.silent[host] = time.monotonic()
        raise
