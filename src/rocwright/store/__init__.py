"""Content-addressed artifacts, and the record of which key gave which."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rocwheel.errors import InputError
from rocwright.store.local import LocalStore
from rocwright.store.model import Store

if TYPE_CHECKING:
    from rocwright.store.trust import Trust

__all__ = ["Store", "open_sharing", "open_store"]

SCHEMES: Mapping[str, Callable[[str], Store]] = {"file": LocalStore.at}
"""What opens a URL of each scheme."""


def open_sharing(place: Path, trust: Trust, note: Callable[[str], None] | None = None) -> Store:
    """The store of a folder in front of the shared ones that are trusted.

    `note` is called with what was refused of them and why, and that one does not answer; else it goes to the
    log of this process. Raises InputError for a URL that no shared store can have, NetworkError.
    """
    from rocwright.store.bucket import Bucket
    from rocwright.store.shared import SharedStore
    from rocwright.store.sharing import SharingStore

    tell = note or logging.getLogger(__name__).warning
    shared = [
        SharedStore(name=one.name, bucket=Bucket(one.url), keys=trust.key, note=tell, agree=one.agree)
        for one in trust.store
    ]
    return SharingStore(LocalStore(place.absolute()), shared)


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
