"""Stacks that stand on another: what of them the other's lock builds, and which lock that is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from pathlib import Path

from rocbase.errors import ExplainedError
from rocwright.catalog.load import Catalog
from rocwright.home import Home
from rocwright.plan.resolve.aliases import PYTHON, ROCM
from rocwright.plan.resolve.files import read_lock
from rocwright.plan.resolve.model import Lock, Request

# Tells the locks that answer a request already, the best first.
LocksOf = Callable[[Request], Iterable[Lock]]


def request_below(request: Request, catalog: Catalog) -> Request | None:
    """What is asked of the stack that the one asked for stands on; None where it stands on none.

    That stack takes in what the one above has of its optional components.
    """
    stack = catalog.stack(request.stack)
    if not stack.on:
        return None
    lower = catalog.stack(stack.on)
    extra = tuple(name for name in lower.optional if name in {*stack.components, *request.extra})
    names = {*lower.components, *extra, PYTHON, ROCM}
    return request.model_copy(
        update={
            "stack": lower.name,
            "extra": extra,
            "versions": {name: pin for name, pin in request.versions.items() if name in names},
        }
    )


def kept_below(home: Home, fits: Callable[[Lock], object]) -> LocksOf:
    """Looks for such locks among those of the home folder, the one written last first: what was built from
    it is there, or will be. One that leaves something open, or for which `fits` raises, is passed over."""

    def find_locks(request: Request) -> Iterator[Lock]:
        paths = sorted(home.locks.glob(f"{request.stack}-*.lock"), key=_written, reverse=True)
        for path in paths:
            try:
                lock = read_lock(path)
                if answers(lock, request) and not lock.pending:
                    fits(lock)
                    yield lock
            except (ExplainedError, OSError):
                continue

    return find_locks


def answers(lock: Lock, request: Request) -> bool:
    """Whether a lock has what a request asks for, though it was asked for in other words: the provider that
    is chosen anyway, a version that is pinned."""
    identity = attrgetter("stack", "gpu", "base", "architecture")
    provider = lock.rocm.name if lock.rocm is not None else ""
    commits = {name: pin for name, pin in request.versions.items() if pin.startswith("@")}
    return (
        identity(lock.request) == identity(request)
        and set(lock.request.extra) == set(request.extra)
        and set(lock.request.accept_missing) == set(request.accept_missing)
        and lock.request.allow_untested == request.allow_untested
        and request.provider in ("", provider)
        and {name: pin for name, pin in lock.request.versions.items() if pin.startswith("@")} == commits
        and all(
            lock.versions.get(name) == pin for name, pin in request.versions.items() if name not in commits
        )
    )


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
