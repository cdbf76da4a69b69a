"""DSSE envelopes: a payload and its signatures, made, written and read.

Source: https://github.com/secure-systems-lab/dsse, envelope.md and protocol.md; several are in one file, a
line each, by in-toto's specification of bundles.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocbase.errors import InputError
from rocwright.store.signing.safe_json import parse_json, read_bounded

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner, SSlibKey

# What the name of a file of statements ends with, beside the artifact that they are of.
SUFFIX = ".intoto.jsonl"

PAYLOAD_TYPE = "application/vnd.in-toto+json"
# Bytes of a file of statements; the largest stack's has some 1 MiB.
LARGEST = 8 * 1024 * 1024

# The field of an envelope that says why nobody has signed it.
UNSIGNED = "unsigned"

MOST_LINES = 100
MOST_SIGNATURES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A payload with its signatures: key id and signature, both as written. None of them is checked yet.

    `unsigned` says why there is none, in words that anybody may have written.
    """

    payload: bytes
    payload_type: str
    signatures: tuple[tuple[str, bytes], ...] = ()
    unsigned: str = ""


def pae(payload: bytes, payload_type: str) -> bytes:
    """What is signed: type and payload, each behind its length (DSSE's pre-authentication encoding)."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(payload: bytes, signer: CryptoSigner | None, payload_type: str = PAYLOAD_TYPE) -> Signed:
    """A payload in its envelope, signed where there is a key."""
    if signer is None:
        return Signed(payload=payload, payload_type=payload_type)
    from securesystemslib.dsse import Envelope

    envelope = Envelope(payload, payload_type, {})
    signed = envelope.sign(signer)
    signature = (signed.keyid, bytes.fromhex(signed.signature))
    return Signed(payload=payload, payload_type=payload_type, signatures=(signature,))


def signed_by(envelope: Signed, keys: Iterable[SSlibKey]) -> str:
    """The id of the first of these keys whose signature is right, or "".

    The key id in the envelope is a hint, no more: every signature is tried with every key.
    """
    from securesystemslib.exceptions import UnverifiedSignatureError, VerificationError
    from securesystemslib.signer import Signature

    data = pae(envelope.payload, envelope.payload_type)
    for key in keys:
        for _, signature in envelope.signatures:
            try:
                key.verify_signature(Signature(key.keyid, signature.hex()), data)
            except (UnverifiedSignatureError, VerificationError):
                continue
            return str(key.keyid)
    return ""


def as_line(envelope: Signed) -> bytes:
    """The envelope as a line of JSON."""
    rows = [{"keyid": keyid, "sig": _coded(signature)} for keyid, signature in envelope.signatures]
    data = {"payload": _coded(envelope.payload), "payloadType": envelope.payload_type, "signatures": rows}
    # DSSE has readers pass over fields that they do not know
    data |= {UNSIGNED: envelope.unsigned} if envelope.unsigned and not rows else {}
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def read_envelopes(path: Path) -> list[Signed]:
    """Every envelope in a file, one a line. Raises InputError for what holds none, or is made to deceive."""
    return parse_envelopes(read_bounded(path, LARGEST, "file of statements"), str(path))


def parse_envelopes(data: bytes, name: str) -> list[Signed]:
    """The same of the bytes of a file of that name."""
    if (count := data.count(b"\n")) > MOST_LINES:
        raise InputError(
            f"{name} has {count:,} lines; a file of statements has at most {MOST_LINES}",
            cause="it is another kind of file, or was made to exhaust this machine",
            next_step="check where the file came from, and name another one",
        )
    lines = [line for line in data.split(b"\n") if line.strip()]
    if not lines:
        raise _no_envelope("it is empty")
    return [_envelope(parse_json(line, "statement in an envelope")) for line in lines]


def _envelope(data: Any) -> Signed:
    match data:
        case {"payload": str(payload), "payloadType": str(kind), "signatures": list(rows)}:
            if len(rows) > MOST_SIGNATURES:
                raise _no_envelope(f"it has {len(rows):,} signatures")
            return Signed(
                payload=_decoded(payload),
                payload_type=kind,
                signatures=tuple(_signature(row) for row in rows),
                unsigned=_words(data.get(UNSIGNED)),
            )
        case {"_type": str(), "predicate": _}:
            raise _no_envelope("it is a statement without an envelope, so it has no signature")
        case _:
            raise _no_envelope("payload, payloadType or signatures is missing")


def _words(text: Any) -> str:
    """A stranger's words on one line."""
    return "".join(char for char in text[:200] if char.isprintable()) if isinstance(text, str) else ""


def _signature(row: Any) -> tuple[str, bytes]:
    match row:
        case {"sig": str(signature), "keyid": str(keyid)}:
            return keyid, _decoded(signature)
        case {"sig": str(signature)}:
            return "", _decoded(signature)
    raise _no_envelope("a signature has the wrong format")


def _no_envelope(reason: str) -> InputError:
    return InputError(
        "this is not a DSSE envelope",
        cause=reason,
        next_step="name the file that `rocwright attest` wrote (.intoto.jsonl)",
    )


def _coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decoded(text: str) -> bytes:
    try:
        # both alphabets are allowed by DSSE
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise _no_envelope(f"base64 that cannot be read: {error}") from error
