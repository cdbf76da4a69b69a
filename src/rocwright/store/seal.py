"""A record as its file says it: with the sha256 over its canonical form, which finds damage.

It does not stop a person who can write to the store: whoever changes a record can give it another sha256.
`signatures` lie outside what the sha256 is over, so that some can be added without another form.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from rocbase.model import opened, sealed
from rocwright.store.model import RECORD_SCHEMA, Record

# The field of a record's file that the sha256 is not over.
SIGNATURES = "signatures"


class DamagedRecordError(ValueError):
    """What a record's file says is not what was written there; its text says how that is seen."""


class UnknownRecordError(ValueError):
    """A newer rocwright wrote a record; it is left alone. `schema` is what it says it has."""

    def __init__(self, schema: int) -> None:
        super().__init__(f"it has the schema {schema}")
        self.schema = schema


def seal(record: Record) -> bytes:
    """The file of a record."""
    return json.dumps(sealed(record.model_dump(mode="json")), indent=1, ensure_ascii=True).encode() + b"\n"


def unseal(data: bytes, key: str) -> Record:
    """The record of that key in a file's bytes.

    Raises DamagedRecordError, UnknownRecordError for what a newer rocwright wrote.
    """
    document = _object(data)
    signatures, schema = document.pop(SIGNATURES, []), document.get("schema_version")
    if isinstance(schema, int) and schema > RECORD_SCHEMA and not _is_ours(document):
        raise UnknownRecordError(schema)
    if not isinstance(signatures, list):
        raise DamagedRecordError("its signatures cannot be read")
    try:
        content = opened(document)
    except ValueError as error:
        raise DamagedRecordError(str(error)) from error
    return _record(content, key)


def _is_ours(document: dict[str, Any]) -> bool:
    """Whether nothing but the number of its schema is damaged."""
    try:
        opened(document | {"schema_version": RECORD_SCHEMA})
    except ValueError:
        return False
    return True


def _object(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedRecordError("it is no JSON") from error
    if not isinstance(document, dict):
        raise DamagedRecordError("it is no JSON object")
    return document


def _record(content: dict[str, Any], key: str) -> Record:
    try:
        record = Record.model_validate(content)
    except ValidationError as error:
        raise DamagedRecordError(error.errors()[0]["msg"]) from error
    if record.key != key:
        raise DamagedRecordError("it is the record of another key")
    return record
