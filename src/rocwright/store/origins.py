"""What here came from shared stores, and whether those who signed it are still trusted."""

from __future__ import annotations

import json

from rocwright.store.model import Record, Store, records
from rocwright.store.trust import Trust


def untrusted(store: Store, trust: Trust) -> dict[str, str]:
    """Records, by key, that came from a key that is not trusted now, or that were made of what such gave."""
    doubtful = {record.key: reason for record in records(store) if (reason := _doubt(record, trust))}
    named = {record.key: record.step for record in records(store)}
    while derived := {
        key: f"{step}: made of {named[source]}, which came from a key that is not trusted"
        for key, step in named.items()
        if key not in doubtful and (source := _made_of(store, key, doubtful))
    }:
        doubtful |= derived
    return doubtful


def _doubt(record: Record, trust: Trust) -> str:
    """Why what signed a record does not count any more; "" where it does, or where it ran here."""
    origin = record.origin
    if origin is None:
        return ""
    key = next((trusted for trusted in trust.key if trusted.keyid == origin.keyid), None)
    if key is None:
        return f"{record.step}: {origin}: that key is not trusted any more"
    if key.revoked and origin.signed >= key.revoked:
        return f"{record.step}: {origin}: that key is revoked since {key.revoked}"
    return ""


def _made_of(store: Store, key: str, doubtful: dict[str, str]) -> str:
    """The first input of a step that is doubtful."""
    try:
        inputs = json.loads(store.step(key) or b"{}").get("inputs", [])
        return next((entry["key"] for entry in inputs if entry["key"] in doubtful), "")
    except (ValueError, TypeError, KeyError, AttributeError):
        return ""
