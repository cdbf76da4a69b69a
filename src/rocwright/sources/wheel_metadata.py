"""The METADATA of a stranger's wheel: read with a bound, and compared with the hash that its index gives."""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path

from pypi_simple import DistributionPackage

from rocwheel.errors import FetchError
from rocwheel.files.atomic import sha256_bytes

METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
MOST_METADATA = 16 * 1024**2
"""Bytes that are read of a wheel's METADATA: the longest of the Python index has 1 MiB."""


def read_metadata(path: Path, filename: str) -> bytes:
    """Return the METADATA of a wheel. Raises FetchError for a file that is no wheel."""
    try:
        with zipfile.ZipFile(path) as wheel:
            (name,) = (name for name in wheel.namelist() if METADATA.fullmatch(name))
            with wheel.open(name) as file:
                text = file.read(MOST_METADATA + 1)
        if len(text) > MOST_METADATA:
            raise ValueError(f"{name} is longer than {MOST_METADATA} bytes")
    except (zipfile.BadZipFile, ValueError, KeyError, RuntimeError, EOFError, zlib.error) as error:
        raise FetchError(
            f"{filename} is not a readable wheel",
            cause=f"{type(error).__name__}: {error}"[:300],
            next_step="use another version of it in the recipe",
            subject=filename,
        ) from error
    return text


def checked_metadata(text: bytes, package: DistributionPackage) -> bytes:
    """Return the metadata of a file that its index serves. Raises FetchError if its hash is another."""
    digest = (package.metadata_digests or {}).get("sha256")
    if digest is not None and digest != sha256_bytes(text):
        raise FetchError(
            f"the metadata of {package.filename} does not match its hash",
            cause=f"its sha256 is {sha256_bytes(text)[:16]}..., the index says {digest[:16]}...",
            next_step="try again; if it happens again, the index or a proxy changes files",
            subject=package.filename,
        )
    return text
