"""The rows that can be rehearsed, by name."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from rocbase.errors import InputError
from rocwright.catalog.load import Catalog
from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.shipped import request_of, rows


def rows_by_name(catalog: Catalog) -> dict[str, Request]:
    """Every row of every stack, by the name that it has as a row."""
    return {request.name: request for request in (request_of(stack, row) for stack, row in rows(catalog))}


def asked_rows(catalog: Catalog, names: Sequence[str]) -> list[Request]:
    """The rows of these names, where a stack's name stands for all of its rows; all, where none is named.

    Raises InputError for a name that is neither.
    """
    requests = rows_by_name(catalog)
    selected: dict[str, Request] = {}
    for name in names or requests:
        ours = {row: request for row, request in requests.items() if name in (row, request.stack)}
        if not ours:
            near = get_close_matches(name, [*requests, *catalog.stacks], n=3) or [*requests][:3]
            raise InputError(
                f"there is no row {name}",
                cause=f"there are {', '.join(near)}",
                next_step="name a stack (rocwright stacks lists them), or a row such as "
                f"{next(iter(requests))}",
            )
        selected |= ours
    return list(selected.values())
