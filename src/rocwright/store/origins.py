"""What here came from shared stores, and whether those who signed it are still trusted."""

from __future__ import annotations

import json

from rocwright.store.model import Record, Store
from rocwright.store.trust import Trust


def untrusted(store: Store, trust: Trust) -> dict[str, str]:
    """Records, by key, that came from a key that is not trusted now, or that were made of what such gave."""
    found = {one.key: why for one in store.records() if (why := _doubt(one, trust))}
    named = {one.key: one.step for one in store.records()}
    while more := {
        key: f"{step}: made of {named[of]}, which came from a key that is not trusted"
        for key, step in named.items()
        if key not in found and (of := _made_of(store, key, found))
    }:
        found |= more
    return found


def _doubt(record: Record, trust: Trust) -> str:
    """Why what signed a record does not count any more; "" where it does, or where it ran here."""
    origin = record.origin
    if origin is None:
        return ""
    key = next((one for one in trust.key if one.keyid == origin.keyid), None)
    if key is None:
        return f"{record.step}: {origin}: that key is not trusted any more"
    if key.revoked and origin.signed >= key.revoked:
        return f"{record.step}: {origin}: that key is revoked since {key.revoked}"
    return ""


def _made_of(store: Store, key: str, doubtful: dict[str, str]) -> str:
    """The first input of a step that is doubtful."""
    try:
        inputs = json.loads(store.step(key) or b"{}").get("inputs", [])
        return next((one["key"] for one in inputs if one["key"] in doubtful), "")
    except (ValueError, TypeError, KeyError, AttributeError):
        return ""
