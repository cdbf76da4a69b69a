"""Commands that run this interpreter."""

from __future__ import annotations

import sys


def python_module(name: str, *arguments: str) -> list[str]:
    """Return the command that runs the module `name` with this interpreter, from any folder.

    `python -m` puts the current folder first on its path: a cloned project with a `json.py` would run as the
    user who types `rocwright lock` in it. `-P` leaves that folder out. `-I` would hide a user's installation.
    """
    return [sys.executable, "-P", "-m", name, *arguments]
