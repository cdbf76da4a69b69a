"""Sizes as TOML files write them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

_UNITS = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}


def _parse_size(value: object) -> object:
    if not isinstance(value, str):
        return value
    number, _, unit = value.strip().partition(" ")
    if unit not in _UNITS or not re.fullmatch(r"\d+(\.\d+)?", number):
        raise ValueError(f"{value!r} is not a size such as '1.5 GiB'")
    return int(float(number) * _UNITS[unit])


_WRITTEN = {"type": "string", "pattern": rf"^\d+(\.\d+)? ({'|'.join(_UNITS)})$"}

# Bytes; written in TOML as "1.5 GiB".
Size = Annotated[
    int,
    BeforeValidator(_parse_size),
    Field(ge=0, strict=True),
    WithJsonSchema({"anyOf": [_WRITTEN, {"type": "integer", "minimum": 0}]}),
]
