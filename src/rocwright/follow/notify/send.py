"""One delivery, in a process of its own: `python -m rocwright.follow.notify.send`.

It is told all of it as JSON on its standard input, so that no list of processes shows an address, and answers
with one of few fixed sentences: whatever a library or a receiver says may hold the address.
"""

from __future__ import annotations

import json
import logging
import re
import sys

# Seconds that a receiver may take to be reached, and to answer.
CONNECT, READ = 5.0, 10.0

UNKNOWN_URL = "no service that apprise knows has such a URL"
NO_CONNECTION = "it cannot be reached"
REFUSED = "it did not take the message"
NO_LIBRARY = "apprise cannot be loaded"

_STATUS = re.compile(r"\berror[=:] ?([1-5]\d\d)\b")
_UNREACHED = re.compile(r"(?i)connection error|socket")


def main() -> int:
    """Deliver what the standard input says; 0 where it was taken, else 1 and why on standard output."""
    payload = json.load(sys.stdin)
    reason = _ping(payload["url"]) if payload.get("ping") else _send(payload)
    if reason:
        print(reason)
    return 1 if reason else 0


def _send(payload: dict[str, str]) -> str:
    """Hand a message to apprise; why it was not taken, "" where it was."""
    try:
        import apprise
    except ImportError:
        return NO_LIBRARY
    heard = _Heard()
    logger = logging.getLogger("apprise")
    logger.handlers, logger.propagate = [heard], False
    receiver = apprise.Apprise.instantiate(payload["url"])
    if receiver is None:
        return UNKNOWN_URL
    for name, seconds in (("socket_connect_timeout", CONNECT), ("socket_read_timeout", READ)):
        # what the URL itself says stands
        if getattr(receiver, name) == getattr(type(receiver), name):
            setattr(receiver, name, seconds)
    if receiver.overflow_mode == apprise.OverflowMode.UPSTREAM:
        # a receiver refuses what is too long for it
        receiver.overflow_mode = apprise.OverflowMode.SPLIT
    delivered = receiver.notify(
        body=payload["body"],
        title=payload["title"],
        notify_type=apprise.NotifyType(payload["type"]),
        body_format=apprise.NotifyFormat.TEXT,
    )
    return "" if delivered else heard.reason


class _Heard(logging.Handler):
    """Takes out of what apprise logs what can be told: no word of it is repeated."""

    reason = REFUSED

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if status := _STATUS.search(message):
            self.reason = f"it answered {status[1]}"
        elif _UNREACHED.search(message):
            self.reason = NO_CONNECTION


def _ping(url: str) -> str:
    """Ask for an address; why that did not work, "" where it did."""
    import requests

    try:
        answer = requests.get(url, timeout=(CONNECT, READ), stream=True)
    except requests.ConnectionError:
        return NO_CONNECTION
    except (requests.RequestException, ValueError):
        return REFUSED
    return "" if answer.ok else f"it answered {answer.status_code}"


if __name__ == "__main__":
    sys.exit(main())
