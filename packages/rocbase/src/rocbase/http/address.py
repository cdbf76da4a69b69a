"""Addresses that people and strangers give: what is none is told, and not met later as a fault."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from rocbase.errors import InputError

_SECRET = re.compile(r"//[^/]*@|[?#].*", re.DOTALL)


def checked(url: str) -> str:
    """The address itself. Raises ValueError for brackets without an IPv6 address, and for a false port."""
    _ = urlsplit(url).port
    return url


def split(url: str, label: str = "") -> SplitResult:
    """The parts of an address that `label` names. Raises InputError where `checked` raises ValueError."""
    try:
        return urlsplit(checked(url))
    except ValueError as error:
        raise InputError(
            f"{label}{_shown(url)!r} is not an address",
            cause=str(error),
            next_step="check host and port: SCHEME://HOST:PORT/PATH, an IPv6 address in brackets",
        ) from error


def is_same_server(url: str, other_url: str) -> bool:
    """Return whether what is secret to one address may be sent to the other: same scheme, host and port."""
    (scheme, place), (other_scheme, other_place) = (urlsplit(address)[:2] for address in (url, other_url))
    return (scheme, place.rpartition("@")[2]) == (other_scheme, other_place.rpartition("@")[2])


def _shown(url: str) -> str:
    """Without credentials, query and fragment, and no longer than a line."""
    return _SECRET.sub(lambda match: "//" if match[0].startswith("//") else "", url)[:80]
