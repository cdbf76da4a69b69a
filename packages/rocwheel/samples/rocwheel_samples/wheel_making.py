"""Small wheels for tests, written with the standard library."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

WHEEL = b"Wheel-Version: 1.0\nGenerator: made by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
METADATA = b"Metadata-Version: 2.1\nName: small\nVersion: 1.0\n\nA small wheel.\n"
NAME = "small-1.0-py3-none-any.whl"

FILES = {
    "small/__init__.py": b"answer = 42\n",
    "small-1.0.dist-info/METADATA": METADATA,
    "small-1.0.dist-info/WHEEL": WHEEL,
}


def zip_of(files: dict[str, bytes]) -> bytes:
    """A zip of these files, deflated, with times and modes as the standard library chooses them."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def small_wheel(folder: Path, files: dict[str, bytes] = FILES, name: str = NAME) -> Path:
    """A wheel (without RECORD, unless `files` has one) in `folder`."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zip_of(files))
    return path
