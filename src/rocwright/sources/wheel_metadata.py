"""The METADATA of a stranger's wheel: read with a bound, and compared with the hash that its index gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rocbase.errors import ExplainedError, FetchError
from rocbase.files.atomic import sha256_bytes
from rocwheel.wheels import archive

if TYPE_CHECKING:
    # importing it takes 130 ms, and a lock that is there needs none of it
    from pypi_simple import DistributionPackage


def read_metadata(path: Path, filename: str) -> bytes:
    """Return the METADATA of a wheel. Raises FetchError for a file that is no wheel."""
    try:
        return archive.read_metadata(path)
    except ExplainedError as error:
        raise FetchError(
            f"{filename} is not a readable wheel",
            cause=f"{error.message}: {error.cause}"[:300],
            next_step="use another version of it in the recipe",
            subject=filename,
        ) from error


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
