"""The locks that come with rocwright: one a row of a stack, known good as far as their evidence says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Row, Stack
from rocwright.catalog.read import holder
from rocwright.errors import InputError
from rocwright.resolve.files import read_lock, write_lock
from rocwright.resolve.lock import make_lock
from rocwright.resolve.model import Lock, Request
from rocwright.resolve.outside import Offline

FOLDER = "locks"


def rows(catalog: Catalog) -> Iterator[tuple[Stack, Row]]:
    """Every row of every stack, in the order of names."""
    for stack in catalog.stacks.values():
        for row in stack.row:
            yield stack, row


def request_of(stack: Stack, row: Row) -> Request:
    """What a row asks for."""
    return Request(
        stack=stack.name, gpu=(row.gpu,), base=row.base, provider=row.provider, versions=row.versions
    )


def path_of(catalog: Catalog, request: Request) -> Path:
    """Where the lock of such a request lies in a catalog."""
    words = [*request.gpu, request.base.replace(":", "-"), *([request.provider] if request.provider else [])]
    versions = [f"{name}-{version}" for name, version in sorted(request.versions.items())]
    name = f"{FOLDER}/{request.stack}/{'_'.join([*words, *versions])}.lock"
    return (holder(name, catalog.folders) or catalog.folders[0]) / name


def shipped_lock(catalog: Catalog, request: Request) -> Lock | None:
    """The lock that comes with rocwright for this request, or for the row that it means; None without one.

    A request that leaves provider and versions open means the first row of its stack, GPU and base.
    """
    for stack, row in rows(catalog):
        if stack.name != request.stack or (row.gpu,) != request.gpu or row.base != request.base:
            continue
        meant = request_of(stack, row)
        same = request.provider in ("", meant.provider) and request.versions in ({}, meant.versions)
        path = path_of(catalog, meant)
        if same and not request.extra and path.exists():
            return read_lock(path, meant).model_copy(update={"request": request})
    return None


def ship(catalog: Catalog) -> list[Path]:
    """Write the lock of every row anew, from the catalog alone; gives the files that changed."""
    changed = []
    for stack, row in rows(catalog):
        request = request_of(stack, row)
        path = path_of(catalog, request)
        made = make_lock(request, catalog, Offline(), lambda _: None)
        try:
            old = read_lock(path, request)
        except InputError:
            old = None
        if old is None or old.model_copy(update={"created": made.created}) != made:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_lock(path, made)
            changed.append(path)
    return changed
