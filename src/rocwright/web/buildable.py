"""What can be built on this machine: rows whose lock comes with rocwright, and whose plan can be made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rocbase.errors import ExplainedError
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Stack
from rocwright.model.architecture import host
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.shipped import request_of, rows, shipped_lock


@dataclass(slots=True)
class Buildable:
    """Looks once for each catalog: planning every row takes a moment."""

    _cached: tuple[Catalog, list[tuple[Stack, Request]]] | None = field(default=None, repr=False)

    def of(self, catalog: Catalog) -> list[tuple[Stack, Request]]:
        """The rows, with their stacks, in the order of names."""
        if self._cached is None or self._cached[0] is not catalog:
            self._cached = (catalog, [*_planned(catalog)])
        return self._cached[1]

    def named(self, catalog: Catalog, name: str) -> Request | None:
        """The one of that name; None where it cannot be built here."""
        return next((request for _, request in self.of(catalog) if request.name == name), None)


def _planned(catalog: Catalog) -> Iterator[tuple[Stack, Request]]:
    for stack, row in rows(catalog):
        request = request_of(stack, row)
        if request.architecture is not host():
            continue
        try:
            lock = shipped_lock(catalog, request)
            if lock is not None and make_plan(lock, catalog).steps:
                yield stack, request
        except ExplainedError:
            continue
