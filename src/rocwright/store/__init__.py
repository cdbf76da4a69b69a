"""Content-addressed artifacts, and the record of which key gave which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from rocwheel.errors import InputError
from rocwright.store.local import LocalStore
from rocwright.store.model import Store

__all__ = ["Store", "open_store"]

SCHEMES: Mapping[str, Callable[[str], Store]] = {"file": LocalStore.at}
"""What opens a URL of each scheme."""


def open_store(place: str | Path) -> Store:
    """The store at a folder's path or a URL. Raises InputError for a scheme that is not known."""
    scheme = urlsplit(place).scheme if isinstance(place, str) else ""
    if not isinstance(place, str) or not scheme:
        return LocalStore(Path(place).absolute())
    if scheme not in SCHEMES:
        known = " and ".join(f"{one}://" for one in SCHEMES)
        raise InputError(
            f"unsupported store URL: {scheme}://",
            cause=f"this version of rocwright keeps stores in a folder's path or {known}",
            next_step=f"give a folder's path, or a URL that begins with {known}",
        )
    return SCHEMES[scheme](place)
