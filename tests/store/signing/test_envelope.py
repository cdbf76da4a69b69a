"""The envelope of a statement, to the byte, and its bounds."""

from __future__ import annotations

import base64
import json

import pytest
from securesystemslib.signer import CryptoSigner

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.store.signing.envelope import (
    MOST_LINES,
    MOST_SIGNATURES,
    PAYLOAD_TYPE,
    UNSIGNED,
    Signed,
    as_line,
    parse_envelopes,
    sign,
    signed_by,
)

ALICE, BOB = CryptoSigner.generate_ed25519(), CryptoSigner.generate_ed25519()
EMPTY = b'{"payload":"","payloadType":"x","signatures":[]}'


def test_a_signed_envelope_has_what_dsse_says_and_no_more() -> None:
    signed = sign(b"{}", ALICE)
    [(keyid, signature)] = signed.signatures
    told = {"keyid": keyid, "sig": base64.b64encode(signature).decode()}
    assert json.loads(as_line(signed)) == {
        "payload": base64.b64encode(b"{}").decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [told],
    }
    reason = Signed(payload=b"", payload_type="x", signatures=signed.signatures, unsigned="why")
    assert UNSIGNED not in json.loads(as_line(reason))


def test_an_envelope_is_one_line_without_spaces() -> None:
    assert as_line(Signed(payload=b"", payload_type="x", signatures=())) == EMPTY + b"\n"


@each("text", ["-_-_", "+/+/", "-/+_"])
def test_both_alphabets_of_base64_are_read(text: str) -> None:
    line = json.dumps({"payload": text, "payloadType": "x", "signatures": []}).encode()
    [read] = parse_envelopes(line, "it")
    assert read.payload == base64.b64decode("+/+/")


def test_why_it_is_not_signed_stands_in_one_that_is_not() -> None:
    line = as_line(Signed(payload=b"", payload_type="x", signatures=(), unsigned="checks are left"))
    assert json.loads(line)[UNSIGNED] == "checks are left"
    [read] = parse_envelopes(line, "file")
    assert read.unsigned == "checks are left"
    assert UNSIGNED not in json.loads(as_line(Signed(payload=b"", payload_type="x", signatures=())))


@each(
    ("said", "read"),
    [("a\x1b[31m\nb\u202e", "a[31mb"), ("x" * 500, "x" * 200), (7, ""), (None, ""), (["a"], "")],
)
def test_a_strangers_words_are_one_short_line_that_can_be_printed(said: object, read: str) -> None:
    data = json.loads(EMPTY) | {UNSIGNED: said}
    [found] = parse_envelopes(json.dumps(data).encode(), "file")
    assert found.unsigned == read


def test_the_key_that_signed_is_named_whatever_id_and_order_the_envelope_gives() -> None:
    signed = sign(b"{}", ALICE)
    [(_, signature)] = signed.signatures
    rows = ((BOB.public_key.keyid, b"\0" * 64), ("", signature))
    borrowed = Signed(payload=b"{}", payload_type=signed.payload_type, signatures=rows)
    keys = [BOB.public_key, ALICE.public_key]
    assert signed_by(borrowed, keys) == ALICE.public_key.keyid
    assert signed_by(borrowed, keys[:1]) == ""
    assert signed_by(Signed(payload=b"{}", payload_type="another", signatures=rows), keys) == ""
    assert signed_by(Signed(payload=b"{ }", payload_type=signed.payload_type, signatures=rows), keys) == ""


def test_as_many_signatures_and_lines_as_may_be_and_not_one_more() -> None:
    row = {"sig": ""}
    most = json.loads(EMPTY) | {"signatures": [row] * MOST_SIGNATURES}
    [read] = parse_envelopes(json.dumps(most).encode(), "file")
    assert read.signatures == (("", b""),) * MOST_SIGNATURES
    with pytest.raises(InputError, match="not a DSSE envelope"):
        parse_envelopes(json.dumps(most | {"signatures": [row] * (MOST_SIGNATURES + 1)}).encode(), "file")
    assert len(parse_envelopes((EMPTY + b"\n") * MOST_LINES, "file")) == MOST_LINES
    with pytest.raises(InputError, match="file has"):
        parse_envelopes((EMPTY + b"\n") * (MOST_LINES + 1), "file")
