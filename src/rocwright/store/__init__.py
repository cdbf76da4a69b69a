"""Content-addressed artifacts, and the record of which key gave which."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rocbase.errors import InputError
from rocbase.http.address import split
from rocwright.store.local import LocalStore
from rocwright.store.model import Store

if TYPE_CHECKING:
    from rocwright.store.shared import SharedStore
    from rocwright.store.trust import Trust, TrustedStore

__all__ = ["Store", "open_sharing", "open_store"]


def open_sharing(place: Path, trust: Trust, note: Callable[[str], None] | None = None) -> Store:
    """The store of a folder in front of the shared ones that are trusted.

    `note` is called with what was refused of them and why, and that one does not answer; else it goes to the
    log of this process. Raises InputError for a URL that no shared store can have, NetworkError.
    """
    from rocwright.store.sharing import SharingStore

    return SharingStore(LocalStore(place.absolute()), _shared(trust, trust.store, note))


def open_working(url: str) -> Store:
    """The store of a bucket, to build in; what it needs of this machine is as its settings say: the key that
    signs, whom it trusts, and the home folder.

    Raises InputError without a key, and for a URL that no bucket has.
    """
    from rocwright.home import Home
    from rocwright.store.bucket import plain_url
    from rocwright.store.push import plain_name
    from rocwright.store.sharing import WorkingStore
    from rocwright.store.signed import now
    from rocwright.store.signing.keys import chosen, pem_of, signer_of
    from rocwright.store.trust import TrustedKey, TrustedStore, read_trust, trust_file

    private = chosen()
    if private is None:
        raise InputError(
            f"there is no key to sign with, and {plain_url(url)} is shared",
            cause="what is put there is signed, so that others can say whose builds they take",
            next_step="rocwright attest key makes one",
        )
    signer, trust = signer_of(private), read_trust(trust_file())
    own = TrustedKey(name="this-machine", pem=pem_of(signer).decode(), added=now())
    if all(key.keyid != own.keyid for key in trust.key):
        trust = trust.model_copy(update={"key": (*trust.key, own)})
    name = plain_name(url.rstrip("/").rpartition("/")[2])
    target = next((store for store in trust.store if store.url == url), TrustedStore(name=name, url=url))
    behind = [target, *(store for store in trust.store if store is not target)]
    return WorkingStore(LocalStore(Home.default().store), _shared(trust, behind), signer, target.name)


def _shared(
    trust: Trust, stores: Iterable[TrustedStore], note: Callable[[str], None] | None = None
) -> list[SharedStore]:
    from rocwright.store.bucket import Bucket
    from rocwright.store.shared import SharedStore

    tell = note or logging.getLogger(__name__).warning
    return [
        SharedStore(name=store.name, bucket=Bucket(store.url), keys=trust.key, note=tell, agree=store.agree)
        for store in stores
    ]


# What opens a URL of each scheme.
SCHEMES: Mapping[str, Callable[[str], Store]] = {
    "file": LocalStore.at,
    "s3": open_working,
    "gs": open_working,
    "az": open_working,
}


def open_store(place: str | Path) -> Store:
    """The store at a folder's path or a URL. Raises InputError for a scheme that is not known."""
    scheme = split(place).scheme if isinstance(place, str) else ""
    if not isinstance(place, str) or not scheme:
        return LocalStore(Path(place).absolute())
    if scheme not in SCHEMES:
        schemes = " and ".join(f"{name}://" for name in SCHEMES)
        raise InputError(
            f"unsupported store URL: {scheme}://",
            cause=f"this version of rocwright keeps stores in a folder's path or {schemes}",
            next_step=f"give a folder's path, or a URL that begins with {schemes}",
        )
    return SCHEMES[scheme](place)
