"""A record as its file says it: with the sha256 over its canonical form, which finds damage.

It does not stop a person who can write to the store: whoever changes a record can give it another sha256.
`signatures` lie outside what the sha256 is over, so that some can be added without another form.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from rocwright.files import sha256_bytes
from rocwright.models import canonical_json
from rocwright.store.model import RECORD_SCHEMA, Record

SUM, SIGNATURES = "sha256", "signatures"
"""The fields of a record's file that are not the record's."""


class DamagedRecordError(ValueError):
    """What a record's file says is not what was written there; its text says how that is seen."""


class UnknownRecordError(ValueError):
    """A newer rocwright wrote a record; it is left alone. `schema` is what it says it has."""

    def __init__(self, schema: int) -> None:
        super().__init__(f"it has the schema {schema}")
        self.schema = schema


def seal(record: Record) -> bytes:
    """The file of a record."""
    said = record.model_dump(mode="json")
    return _text(said | {SUM: sha256_bytes(canonical_json(said))})


def unseal(data: bytes, key: str) -> Record:
    """The record of that key in a file's bytes.

    Raises DamagedRecordError, UnknownRecordError for what a newer rocwright wrote.
    """
    said = _object(data)
    claimed, signatures, schema = said.pop(SUM, None), said.pop(SIGNATURES, []), said.get("schema_version")
    if isinstance(schema, int) and schema > RECORD_SCHEMA:
        ours = canonical_json(said | {"schema_version": RECORD_SCHEMA})
        if claimed != sha256_bytes(ours):
            raise UnknownRecordError(schema)
        raise DamagedRecordError("the number of its schema is damaged")
    if not isinstance(signatures, list):
        raise DamagedRecordError("its signatures cannot be read")
    if claimed is None:
        raise DamagedRecordError("it has no sha256")
    if claimed != sha256_bytes(canonical_json(said)):
        raise DamagedRecordError("its sha256 is of something else")
    return _record(said, key)


def unsealed(data: bytes, key: str) -> Record:
    """A record as its file said it before records had a sha256. Raises as `unseal` does."""
    return _record(_object(data), key)


def _object(data: bytes) -> dict[str, Any]:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedRecordError("it is no JSON") from error
    if not isinstance(said, dict):
        raise DamagedRecordError("it is no JSON object")
    return said


def _record(said: dict[str, Any], key: str) -> Record:
    try:
        record = Record.model_validate(said)
    except ValidationError as error:
        raise DamagedRecordError(error.errors()[0]["msg"]) from error
    if record.key != key:
        raise DamagedRecordError("it is the record of another key")
    return record


def _text(said: dict[str, Any]) -> bytes:
    return json.dumps(said, indent=1, ensure_ascii=True).encode() + b"\n"
