"""Small trees of files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_tree(folder: Path, files: Mapping[str, str]) -> Path:
    """Files with their text, below `folder`."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
