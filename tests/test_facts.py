"""Rule 1: facts live in data. Code names no GPU, base, component, stack or provider.

Examples in help texts and docstrings may. What the words of FORMATS stand for in code is not of the field.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocwright.catalog.load import builtin_catalog
from rocwright.verify.suites import SUITES

ROOT = Path(__file__).parents[1]
GPU = re.compile(r"gfx[0-9a-f]{3,4}(:\S+)?")

FORMATS = {
    "amd": "the maker's name, in names of GPUs",
    "apt": "the program that reads an archive, and its folder",
    "arch": "a qualifier of a package URL",
    "debian": "a kind of archive, of source package and of root file system",
    "distribution": "the role of a component in an SBOM",
    "rocm": "the part of a lock that has ROCm",
    "setuptools": "the back end of a source package that names none (PEP 517)",
}
"""Names of the catalog that mean something else in code, too."""


def modules() -> list[Path]:
    places = [ROOT / "src/rocwright", ROOT / "packages/rocbase/src", ROOT / "packages/rocwheel/src/rocwheel"]
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


def test_no_string_in_code_is_a_base_component_stack_or_provider() -> None:
    catalog = builtin_catalog()
    bases = {name for base in catalog.bases.values() for name in (base.name, *base.names)}
    known = {*bases, *catalog.components, *catalog.stacks, *catalog.providers, *catalog.managers}
    known -= {*FORMATS, *SUITES}
    named = {str(path): one for path in modules() for one in strings(path) if one in known}
    assert not named
