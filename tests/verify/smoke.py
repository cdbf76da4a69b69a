"""The smoke suites' own modules, which lie in the catalog and are no part of the package."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import rocwright

FOLDER = Path(rocwright.__file__).parent / "catalog" / "data" / "checks" / "torch"


def module(name: str) -> ModuleType:
    """A module of the suites that needs no torch, such as `explain`."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return importlib.import_module(f"smoke.{name}")
