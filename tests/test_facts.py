"""Rule 1: facts live in data. No GPU is named in code, but for examples in help texts and docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GPU = re.compile(r"gfx[0-9a-f]{3,4}(:\S+)?")


def modules() -> list[Path]:
    places = [ROOT / "src/rocwright", ROOT / "packages/rocwheel/src/rocwheel"]
    return [
        path
        for place in places
        for path in sorted(place.rglob("*.py"))
        if place / "catalog/data" not in path.parents
    ]


def strings(path: Path) -> Iterator[str]:
    """The strings that code works with."""
    return (
        one.value
        for one in ast.walk(ast.parse(path.read_text()))
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    )


@pytest.mark.parametrize("package", ["rocwright", "rocwheel"])
def test_no_string_in_code_is_a_gpu(package: str) -> None:
    named = {
        str(path): one
        for path in modules()
        if package in path.parts
        for one in strings(path)
        if GPU.fullmatch(one)
    }
    assert not named
