"""What makes a short command start fast: called before anything of pydantic's is imported."""

from __future__ import annotations

import gc
import os


def settle() -> None:
    """Set up the interpreter for a process that imports, lists and ends."""
    # importing and listing make no rubbish: by default a tenth of the time is spent looking for it
    gc.set_threshold(100_000)
    # looking for plugins of pydantic reads the metadata of every package that is installed
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
