"""The parts of exported scripts that are the same for every lock, as files; @NAMES@ in them are filled in."""

from __future__ import annotations

from pathlib import Path


def template(name: str) -> str:
    """The text of a file of this folder."""
    return (Path(__file__).parent / name).read_text()
