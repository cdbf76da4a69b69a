"""A delivery in bounded time: what it takes longer than is ended."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence

from rocbase.errors import ExplainedError
from rocbase.processes.python import python_module
from rocbase.processes.run import run
from rocwright.config import SecretUrl
from rocwright.follow.notify.model import StateChange
from rocwright.follow.notify.words import body_of, title_of

# Seconds for one delivery, whatever a receiver or a name server does.
LIMIT = 25.0

BROKE = "the delivery broke down"
# Only then, nobody knows whether it came.
NO_ANSWER = "no answer in time"

_GOOD = {"mended", "promoted"}


def deliver(to: SecretUrl, called: str, changes: Sequence[StateChange], *, doubt: bool = False) -> str:
    """Tell somebody of changes; why that did not work, "" where it did. It holds no secret."""
    good = all(change.kind in _GOOD for change in changes)
    return message(
        to,
        called,
        title_of(changes),
        body_of(changes, platform.node(), doubt=doubt),
        "success" if good else "failure",
    )


def message(to: SecretUrl, called: str, title: str, body: str, kind: str = "info") -> str:
    """The same for any text; `kind` is one of apprise's: info, success, warning, failure."""
    return _sent(to, called, {"title": title, "body": body, "type": kind})


def ping(to: SecretUrl) -> str:
    """Ask for an address, to say that all is well; why that did not work, "" where it did."""
    return _sent(to, "[cycle.ping]", {"ping": "yes"})


def _sent(to: SecretUrl, called: str, payload: dict[str, str]) -> str:
    try:
        url = to.read(called)
        data = json.dumps(payload | {"url": url}).encode()
        ended = run(python_module("rocwright.follow.notify.send"), stdin=data, timeout=LIMIT)
    except ExplainedError as error:
        return error.cause or error.message
    if ended.timed_out:
        return NO_ANSWER
    if ended.returncode == 0:
        return ""
    # a traceback may hold the address: only the process's own sentence is passed on
    return ended.stdout.strip() if ended.returncode == 1 and ended.stdout.strip() else BROKE
