"""Content-addressed artifacts, and the record of which key gave which."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from rocwright.errors import InputError
from rocwright.store.local import LocalStore
from rocwright.store.model import DamagedBlobError, Output, Record, Store

__all__ = ["DamagedBlobError", "LocalStore", "Output", "Record", "Store", "open_store"]


def open_store(url: str) -> LocalStore:
    """The store at `url`: a folder's path or a `file://` URL. Raises InputError for any other scheme."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return LocalStore(Path(unquote(parts.path)))
    if parts.scheme == "":
        return LocalStore(Path(url).absolute())
    raise InputError(
        f"a store cannot be at {parts.scheme}://",
        cause="this version knows stores in folders only",
        next_step="give a folder's path or a file:// URL",
    )
