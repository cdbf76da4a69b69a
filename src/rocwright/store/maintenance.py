"""What a clean-up asks of a store in a folder: its files' times, and the locks of those who work with it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rocwright.store import leases
from rocwright.store.layout import StoreLayout
from rocwright.store.model import is_key


@dataclass(frozen=True, slots=True)
class LocalMaintenance:
    """The `Maintenance` of a folder."""

    layout: StoreLayout

    def put_at(self, sha256: str) -> float:
        return _modified(self.layout.blob(sha256))

    def written_at(self, key: str) -> float:
        return _modified(self.layout.record(key))

    def running(self) -> Collection[Mapping[str, str]]:
        return leases.held(self.layout).values()

    def locked(self) -> set[str]:
        names = filter(is_key, self.layout.locks())
        return {name for name in names if not leases.is_free(self.layout.lock(name))}

    def claimed(self, key: str) -> AbstractContextManager[bool]:
        names = [key] if is_key(key) else self.layout.locks(key)
        return leases.ours(map(self.layout.lock, names))

    @contextlib.contextmanager
    def cleaning(self, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
        with leases.cleaning(self.layout, on_wait):
            leases.forget_killed(self.layout)
            yield


def _modified(path: Path) -> float:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0
