"""What the pages show in Python is there: each block parses, each name that it or a table gives exists."""

from __future__ import annotations

import ast
import pkgutil
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`(rocwright(?:\.\w+)+)\(")


def blocks() -> list[tuple[str, str]]:
    return [
        (page.name, text) for page in sorted(DOCS.rglob("*.md")) for text in BLOCK.findall(page.read_text())
    ]


def named() -> list[tuple[str, str]]:
    return [
        (page.name, name) for page in sorted(DOCS.rglob("*.md")) for name in NAMED.findall(page.read_text())
    ]


def test_there_are_pages_for_python() -> None:
    assert {"python.md", "records.md"} <= {page for page, _ in blocks()}
    assert len(named()) > 10


@pytest.mark.parametrize(("page", "text"), blocks())
def test_what_a_block_takes_from_rocwright_is_there(page: str, text: str) -> None:
    for node in ast.walk(ast.parse(text, page)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("rocwright"):
            for alias in node.names:
                assert pkgutil.resolve_name(f"{node.module}:{alias.name}") is not None


@pytest.mark.parametrize(("page", "name"), named())
def test_what_a_table_names_can_be_called(page: str, name: str) -> None:
    assert callable(pkgutil.resolve_name(name)), page
