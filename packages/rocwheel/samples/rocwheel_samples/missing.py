"""What is missing on this machine skips a test, and fails it in CI."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rocwheel_samples import MissingError


@contextmanager
def skipped_where_missing() -> Iterator[None]:
    """Skip the test where something is not there that must be fetched or installed; fail it in CI."""
    try:
        yield
    except MissingError as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))
