"""The base of every model that text is read into: frozen, and strict about unknown names."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable model; a name that it does not know is an error, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


def canonical_json(data: Any) -> bytes:
    """The one JSON spelling of `data` that keys are made from: sorted names, no spaces, ASCII."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
