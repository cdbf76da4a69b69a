"""What steps took in builds on machines of two cores."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

from rocwright.execution.history import Took

TABLE = Path(__file__).with_name("took.toml")


def took() -> Iterator[Took]:
    """Yield each step of took.toml."""
    for name, stack, seconds, jobs, cached in tomllib.loads(TABLE.read_text())["took"]:
        yield Took(name=name, stack=stack, seconds=seconds, jobs=jobs, cached=cached)
