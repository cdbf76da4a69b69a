"""What is seen, what changed, and what was told to whom."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from pydantic import Field

from rocbase.model import Frozen
from rocwright.config import Kind

# States of a row; what else is seen is in some state, or FINE.
PASSING, BROKEN, FINE = "passing", "broken", ""


class Fact(NamedTuple):
    """How something stands: `key` says what, `state` how.

    `mark` says what came to it (a run, a promotion): the same state with another mark is the same state.
    `subject` is how people call it, `detail` are lines about it.
    """

    key: str
    state: str
    mark: str
    subject: str
    channel: str = ""
    run: str = ""
    detail: tuple[str, ...] = ()


class StateChange(Frozen):
    """A change of state, told in words: `id` is its own for ever, `at` when it was seen (UTC, ISO 8601)."""

    id: str
    kind: Kind
    subject: str
    at: str
    headline: str
    channel: str = ""
    run: str = ""
    detail: tuple[str, ...] = ()


class DeliveryState(Frozen):
    """A destination: what it was told last, what waits for it.

    `sending` stands from the begin of a delivery to its answer: where it stands and nobody delivers, nobody
    knows whether that one came. After so many `tries` that failed, the last because of `error`, the next is
    at `again`.
    """

    waiting: tuple[StateChange, ...] = ()
    sending: bool = False
    tries: int = 0
    error: str = ""
    again: str = ""
    last: StateChange | None = None
    last_at: str = ""


class Ledger(Frozen):
    """All that is kept from one look to the next: how everything stood (by the keys of facts), the newest
    changes (the newest last), who was told; `pinged` is by folder the cycle that was reported last."""

    id: str = Field(default_factory=lambda: secrets.token_hex(16))
    since: str
    seen: dict[str, str] = {}
    changes: tuple[StateChange, ...] = ()
    told: dict[str, DeliveryState] = {}
    pinged: dict[str, str] = {}
    ping: DeliveryState = DeliveryState()
