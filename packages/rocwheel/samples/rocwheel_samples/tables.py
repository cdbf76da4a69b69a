"""A table of facts as one test, which names every fact that fails."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]
Names = Iterable[object] | Callable[[Any], object] | None
Row = type(pytest.param())

MOST = 200
"""Characters of a row that are shown where it has no name."""


def each(names: str | Sequence[str], rows: Iterable[Any], ids: Names = None) -> Callable[[Test], Test]:
    """Try a test with each row, as pytest's `parametrize` does, but in one test.

    For tests that leave nothing behind: all rows see the same fixtures.
    """
    words = [word.strip() for word in names.split(",")] if isinstance(names, str) else list(names)
    table = list(rows)
    labels = [row.id or "" if isinstance(row, Row) else str(row)[:MOST] for row in table]
    labels = labels if ids is None or callable(ids) else [*map(str, ids)]

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def all_rows(**fixtures: Any) -> None:
            assert table, "an empty table"
            failures = []
            for label, row in zip(labels, table, strict=True):
                values = row.values if isinstance(row, Row) else (row,) if len(words) == 1 else row
                try:
                    test(**dict(zip(words, values, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    failures.append(f"{label}: {type(error).__name__}: {error}")
            assert not failures, f"{len(failures)} of {len(table)}:\n" + "\n".join(failures)

        signature = inspect.signature(test)
        others = [value for name, value in signature.parameters.items() if name not in words]
        all_rows.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return all_rows

    return decorate
