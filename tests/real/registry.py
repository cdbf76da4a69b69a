"""A registry of this machine; a test is skipped where it is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from samples import registry
from samples.registry import Registry as Registry

from rocwheel_samples.missing import skipped_where_missing


@contextmanager
def serving_registry(folder: Path) -> Iterator[Registry]:
    """The registry, its blobs below `folder`."""
    with skipped_where_missing(), registry.serving_registry(folder) as serving:
        yield serving
