"""The base of every model that text is read into: frozen, and strict about unknown names."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict

from rocbase.files.atomic import sha256_bytes

SUM = "sha256"
"""The field of a sealed object that says what the rest of it gives."""


class Frozen(BaseModel):
    """An immutable model; a name that it does not know is an error, never ignored."""

    # what validates is made when a model is first used: a command uses few of those that it imports
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)


def canonical_json(data: Any) -> bytes:
    """The one JSON spelling of `data` that keys are made from: sorted names, no spaces, ASCII."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """An object with the sha256 over its canonical form: it finds damage, not whoever can write the file."""
    return content | {SUM: sha256_bytes(canonical_json(content))}


def opened(document: object) -> dict[str, Any]:
    """What was sealed. Raises ValueError where it is no object, or not what its sha256 is of."""
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    content = {name: value for name, value in document.items() if name != SUM}
    if SUM not in document:
        raise ValueError("it has no sha256")
    if document[SUM] != sha256_bytes(canonical_json(content)):
        raise ValueError("its sha256 does not match its content")
    return content
