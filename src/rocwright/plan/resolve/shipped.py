"""The locks that come with rocwright: one a row of a stack, known good as far as their evidence says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cmp_to_key
from operator import attrgetter
from typing import TypedDict

from rocbase.toml.read import holder
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Stack, StackRow
from rocwright.model.versions import is_older
from rocwright.plan.resolve.files import read_lock
from rocwright.plan.resolve.model import Lock, LockedComponent, LockedPython, Request

FOLDER = "locks"


def rows(catalog: Catalog) -> Iterator[tuple[Stack, StackRow]]:
    """Every row of every stack, in the order of names."""
    for stack in catalog.stacks.values():
        for row in stack.row:
            yield stack, row


def request_of(stack: Stack, row: StackRow) -> Request:
    """What a row asks for."""
    return Request(
        stack=stack.name,
        gpu=(row.gpu,),
        base=row.base,
        provider=row.provider,
        versions=row.versions,
        extra=row.extra,
        accept_missing=row.accept_missing,
    )


def name_of(request: Request) -> str:
    """Where the lock of such a request lies in a folder of a catalog."""
    words = [*request.gpu, request.base.replace(":", "-"), *([request.provider] if request.provider else [])]
    versions = [f"{name}-{version}" for name, version in sorted(request.versions.items())]
    extra = [f"with-{name}" for name in sorted(request.extra)]
    return f"{FOLDER}/{request.stack}/{'_'.join([*words, *versions, *extra])}.lock"


def _rows_for(request: Request, catalog: Catalog) -> list[Request]:
    """Return the rows for a request's stack, GPUs, base and architecture, those of newer releases first."""
    identity = attrgetter("stack", "gpu", "base", "architecture")
    own = [row for row in requests(catalog) if identity(row) == identity(request)]
    return sorted(own, key=cmp_to_key(_newest_first))


def _newest_first(first: Request, second: Request) -> int:
    pairs = ((version, second.versions.get(name, version)) for name, version in first.versions.items())
    return next((1 if is_older(*pair) else -1 for pair in pairs if pair[0] != pair[1]), 0)


def shipped_lock(catalog: Catalog, request: Request) -> Lock | None:
    """The lock that comes with rocwright for this request, or for the row that it means; None without one.

    A request that leaves provider and versions open means the newest row of its stack, GPU and base.
    """
    for row_request in _rows_for(request, catalog):
        matches = request.provider in ("", row_request.provider) and request.versions in (
            {},
            row_request.versions,
        )
        matches = matches and set(request.accept_missing) == set(row_request.accept_missing)
        matches = matches and set(request.extra) == set(row_request.extra) and not request.allow_untested
        folder = holder(name_of(row_request), catalog.folders)
        if matches and folder is not None:
            return read_lock(folder / name_of(row_request), row_request).model_copy(
                update={"request": request}
            )
    return None


class Preferred(TypedDict):
    """What `make_lock` takes of a row: versions before newer ones, and its Python packages by hash, those
    that others published too."""

    prefer: dict[str, str]
    pythons: tuple[LockedPython, ...]
    published: tuple[LockedComponent, ...]


def preferred(catalog: Catalog, request: Request) -> Preferred:
    """What the row that a request means has, whatever it adds or pins: a lock takes it before what is newer,
    so that it says what a plan of that row says. Nothing where it means no row."""
    from rocwright.plan.resolve.lock import versions_in

    for row_request in _rows_for(request, catalog):
        if request.provider in ("", row_request.provider):
            lock = shipped_lock(catalog, row_request)
            if lock is None:
                return Preferred(prefer=dict(row_request.versions), pythons=(), published=())
            return Preferred(
                prefer=versions_in(lock),
                pythons=lock.packages,
                published=tuple(component for component in lock.components if component.kind == "wheels"),
            )
    return Preferred(prefer={}, pythons=(), published=())


def requests(catalog: Catalog) -> list[Request]:
    """What the rows ask for."""
    return [request_of(stack, row) for stack, row in rows(catalog)]
