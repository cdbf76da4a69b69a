"""One function unpacks archives: nothing else in the product extracts members to a disk."""

from __future__ import annotations

import ast
from pathlib import Path

import rocwheel
import rocwright

EXTRACTS = frozenset({"extract", "extractall", "unpack_archive"})
PACKAGES = [Path(package.__file__ or "").parent for package in (rocwright, rocwheel)]


def test_no_module_extracts_members_by_itself() -> None:
    calls = [
        f"{path}:{node.lineno}"
        for package in PACKAGES
        for path in package.rglob("*.py")
        if "data" not in path.relative_to(package).parts  # checks and guards run in a sandbox
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in EXTRACTS
    ]
    assert calls == []
