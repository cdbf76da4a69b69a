"""Programs that tests run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def tool(name: str) -> str | None:
    """The path of a program: of the environment that the tests run in, else of PATH; None where it is not."""
    return shutil.which(name, path=Path(sys.executable).parent) or shutil.which(name)
