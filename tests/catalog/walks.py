"""Which keys of the catalog's files a test walks: it takes each such fact out, and something must change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., None])

WALKED: defaultdict[str, set[str]] = defaultdict(set)
"""Files, as a glob of the catalog's folder -> keys in them."""


def walks(files: str, *keys: str) -> Callable[[Test], Test]:
    """Say that a test takes out each fact of these keys in these files."""

    def told(test: Test) -> Test:
        WALKED[files] |= set(keys)
        return test

    return told
