"""Commands that run this interpreter."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def python_module(name: str, *arguments: str) -> list[str]:
    """Return the command that runs the module `name` with this interpreter, from any folder.

    `python -m` puts the current folder first on its path: a cloned project with a `json.py` would run as the
    user who runs a program in it. `-P` leaves that folder out. `-I` would hide a user's installation.
    """
    return [sys.executable, "-P", "-m", name, *arguments]


@contextmanager
def safe_children() -> Iterator[None]:
    """Have interpreters that a library starts in here leave the current folder out, as `python_module` does.

    multiprocessing starts its processes with `python -c`, which looks into the current folder first.
    """
    previous = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if previous is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = previous
