"""How often, and how soon, a host that fails is asked again: one policy for everything that is downloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwright.sources.patience import current

if TYPE_CHECKING:
    import requests
    from urllib3 import Retry

TRIES = 4

MOST_WAIT = 60
"""Seconds to wait at most between two tries, whatever Retry-After says."""

OVERLOADED = (429, 500, 502, 503, 504)
"""Answers that may be another one soon."""


def retries() -> Retry:
    """Try again after 0, 2 and 4 seconds, or when the host says so; a host that is not there, once more.

    Not at all where somebody said how long it may take.
    """
    from urllib3 import Retry

    if current() is not None:
        return Retry(total=0, redirect=False, raise_on_status=False)
    return Retry(
        total=TRIES - 1,
        connect=1,
        redirect=False,
        status_forcelist=OVERLOADED,
        raise_on_status=False,
        backoff_factor=1,
        backoff_max=MOST_WAIT,
        retry_after_max=MOST_WAIT,
    )


def patient(session: requests.Session) -> requests.Session:
    """`session` with that policy."""
    from requests.adapters import HTTPAdapter

    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=retries()))
    return session
