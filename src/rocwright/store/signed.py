"""What a shared store holds of each signer: a record or a lock in an envelope, and whose word counts.

An envelope's payload is JSON with what it is (`what`), its name, the content, when it was signed (UTC, ISO
8601) and by which rocwright. A signature is over type and payload (DSSE), so that a record cannot be taken
for a lock, nor the record of one key for that of another.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationError

from rocbase.errors import InputError
from rocbase.model import Frozen, canonical_json
from rocwheel.version import __version__
from rocwright.store.signing.envelope import as_line, parse_envelopes, sign, signed_by
from rocwright.store.signing.safe_json import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from securesystemslib.signer import CryptoSigner, SSlibKey

PAYLOAD_TYPE = "application/vnd.rocwright.store+json"
SCHEMA = 1
# Bytes of an envelope; a lock with some thousand packages has 1 MiB.
LARGEST = 4 * 1024 * 1024

# Bytes from which on an envelope is packed.
LARGE = 16 * 1024

# How packed data begins (RFC 1952); an envelope begins with a brace.
GZIP = b"\x1f\x8b"

What = Literal["record", "step", "lock", "wanted", "evidence"]
Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]


class Said(Frozen):
    """The payload of an envelope."""

    schema_version: int = SCHEMA
    what: What
    name: str
    content: str
    signed: Time
    rocwright: str


class RefusedError(ValueError):
    """Why the word of an envelope does not count."""


class NewerError(RefusedError):
    """A newer rocwright signed it: nothing can be said of it here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a signer said, which was checked: the key's id, when, and the content."""

    keyid: str
    signed: str
    content: str


def now() -> str:
    """The time, as it is written."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def envelope_of(kind: What, name: str, content: str, signer: CryptoSigner, signed: str = "") -> bytes:
    """The signed envelope of a content, packed where it is large: a lock is mostly text."""
    payload = Said(what=kind, name=name, content=content, signed=signed or now(), rocwright=__version__)
    line = as_line(sign(canonical_json(payload.model_dump(mode="json")), signer, PAYLOAD_TYPE))
    return gzip.compress(line, mtime=0) if len(line) > LARGE else line


def unpacked(data: bytes) -> bytes:
    """The bytes of an envelope as it lies in a store, packed or not. Raises RefusedError where they are
    damaged, or more than an envelope has."""
    if not data.startswith(GZIP):
        return data
    try:
        reader = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        content = reader.decompress(data, LARGEST + 1)
    except zlib.error as error:
        raise RefusedError(f"it is damaged: {error}") from error
    if len(content) > LARGEST or not reader.eof or reader.unused_data:
        raise RefusedError("it is damaged: it is no whole packed envelope")
    return content


def word_of(data: bytes, kind: What, name: str, keys: Iterable[SSlibKey]) -> Word:
    """What an envelope says under that name, where one of the keys signed it.

    Raises RefusedError with the reason.
    """
    try:
        envelopes = parse_envelopes(unpacked(data), name)
    except InputError as error:
        raise RefusedError(f"it is damaged: {error.cause}") from error
    if len(envelopes) != 1:
        raise RefusedError(f"it has {len(envelopes)} envelopes")
    [envelope] = envelopes
    keyid = signed_by(envelope, keys)
    if not keyid:
        raise RefusedError("the signature is not by that key: it was forged, or damaged")
    if envelope.payload_type != PAYLOAD_TYPE:
        raise RefusedError(f"it is of the type {envelope.payload_type[:80]!r}")
    try:
        parsed = parse_json(envelope.payload, "signed payload")
        if (
            isinstance(parsed, dict)
            and isinstance(parsed.get("schema_version"), int)
            and parsed["schema_version"] > SCHEMA
        ):
            raise NewerError("a newer rocwright signed it")
        payload = Said.model_validate(parsed)
    except InputError as error:
        raise RefusedError(f"what is signed is not JSON: {error.cause}") from error
    except ValidationError as error:
        raise RefusedError(f"what is signed has another form: {error.errors()[0]['msg']}") from error
    if (payload.what, payload.name) != (kind, name):
        raise RefusedError(f"it is the {payload.what} {payload.name[:12]}, in the place of another")
    return Word(keyid=keyid, signed=payload.signed, content=payload.content)
