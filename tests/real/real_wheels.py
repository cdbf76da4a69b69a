"""Files that others built; a test is skipped where they cannot be fetched."""

from __future__ import annotations

from pathlib import Path

from samples import fetched
from samples.fetched import FOLDER as FOLDER

from rocwheel_samples.missing import skipped_where_missing


@skipped_where_missing()
def real_wheel(name: str, version: str) -> Path:
    """The wheel of that name and version, as pip finds it."""
    return fetched.real_wheel(name, version)


@skipped_where_missing()
def debian_package(name: str, suite: str = "sid") -> Path:
    """The .deb of that name in a suite, as apt-get finds it."""
    return fetched.debian_package(name, suite)
