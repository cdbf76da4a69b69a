"""Statements: signed, written, read and checked; and everything that may be wrong with one."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.signer import CryptoSigner, SSlibKey

from rocbase.errors import CheckError, ExplainedError, InputError
from rocbase.files.atomic import sha256_file
from rocwright.cli import cli
from rocwright.home import Home
from rocwright.provenance import statement
from rocwright.provenance.check import read_statement, statements_of, told, verify
from rocwright.provenance.sidecars import attest
from rocwright.store.signing import envelope
from rocwright.store.signing.keys import KEY, PASSPHRASE, chosen, fingerprint, make_key, public_key, signer_of
from tests.provenance.workplace import BETA, make_workplace

ALICE, BOB = CryptoSigner.generate_ed25519(), CryptoSigner.generate_ed25519()
MANY = pytest.mark.parametrize("make", [CryptoSigner.generate_ed25519, CryptoSigner.generate_ecdsa])

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def line(payload: bytes, signer: CryptoSigner | None = ALICE) -> bytes:
    return envelope.as_line(envelope.sign(payload, signer))


def saying(sha256: str, name: str = "file.whl", **more: Any) -> bytes:
    said = {
        "_type": statement.STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": sha256}}],
        "predicateType": statement.PREDICATE,
        "predicate": {},
    }
    return json.dumps(said | more).encode()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file.whl"
    path.write_bytes(b"an artifact")
    return path


def write(file: Path, *lines: bytes) -> Path:
    path = file.with_name(file.name + envelope.SUFFIX)
    path.write_bytes(b"".join(lines))
    return path


def check(file: Path, *lines: bytes, key: SSlibKey = ALICE.public_key) -> str:
    return verify(file, write(file, *lines), [key]).keyid


# what is right


@given(payload=st.binary(max_size=300), kind=st.text(st.characters(codec="utf-8"), max_size=20))
def test_what_is_signed_is_what_dsse_says(payload: bytes, kind: str) -> None:
    encoded = kind.encode()
    assert envelope.pae(payload, kind) == b" ".join(
        [b"DSSEv1", str(len(encoded)).encode(), encoded, str(len(payload)).encode(), payload]
    )


@given(payload=st.binary(max_size=300))
def test_an_envelope_is_read_back_as_it_was_written(
    payload: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("round") / "x.intoto.jsonl"
    path.write_bytes(line(payload))
    (found,) = envelope.read_envelopes(path)
    assert found == envelope.sign(payload, ALICE)
    assert envelope.signed_by(found, [BOB.public_key, ALICE.public_key]) == ALICE.public_key.keyid
    assert envelope.signed_by(found, [BOB.public_key]) == ""


def test_openssl_finds_the_signature_right_too(tmp_path: Path) -> None:
    made = make_key(tmp_path / "own.key")
    signed = envelope.sign(b'{"a": 1}', signer_of(made.private))
    (tmp_path / "pae").write_bytes(envelope.pae(signed.payload, signed.payload_type))
    (tmp_path / "signature").write_bytes(signed.signatures[0][1])
    words: list[str | Path] = ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", made.public]
    words += ["-in", tmp_path / "pae", "-sigfile", tmp_path / "signature"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (tmp_path / "pae").write_bytes(envelope.pae(signed.payload + b" ", signed.payload_type))
    assert subprocess.run(words, capture_output=True, check=False).returncode != 0


@MANY
def test_a_file_and_its_statement_are_right(file: Path, make: Callable[[], CryptoSigner]) -> None:
    signer = make()
    assert (
        check(file, line(saying(sha256_file(file)), signer), key=signer.public_key) == signer.public_key.keyid
    )


def test_one_right_statement_among_others_is_enough(file: Path) -> None:
    other = line(saying("0" * 64, predicateType="https://slsa.dev/verification_summary/v1"))
    mine = line(saying(sha256_file(file)))
    assert check(file, other, line(saying("1" * 64), BOB), mine) == ALICE.public_key.keyid


def test_the_name_of_the_file_does_not_matter_its_bytes_do(file: Path) -> None:
    data = line(saying(sha256_file(file)))
    other = file.with_name("renamed.whl")
    other.write_bytes(file.read_bytes())
    assert check(other, data)


# what is wrong


def refused(file: Path, *lines: bytes, key: SSlibKey = ALICE.public_key) -> ExplainedError:
    with pytest.raises(ExplainedError) as caught:
        check(file, *lines, key=key)
    return caught.value


def test_a_changed_file_is_refused(file: Path) -> None:
    data = line(saying(sha256_file(file)))
    file.write_bytes(b"an artifacT")
    error = refused(file, data)
    assert isinstance(error, CheckError)
    assert "is not the file that was signed" in error.message


def test_a_statement_of_another_file_is_refused(file: Path) -> None:
    error = refused(file, line(saying("0" * 64, name="other.whl")))
    assert "the statement is for another file than file.whl" in error.message
    assert "other.whl" in error.cause


def test_another_key_is_refused(file: Path) -> None:
    error = refused(file, line(saying(sha256_file(file)), BOB))
    assert isinstance(error, CheckError)
    assert "signed with another key" in error.message
    assert BOB.public_key.keyid[:16] in error.cause


def test_a_key_id_that_is_borrowed_does_not_help(file: Path) -> None:
    data = json.loads(line(saying(sha256_file(file)), BOB))
    data["signatures"][0]["keyid"] = ALICE.public_key.keyid
    assert "the signature is invalid" in refused(file, json.dumps(data).encode()).message


def test_an_unsigned_statement_is_refused(file: Path) -> None:
    error = refused(file, line(saying(sha256_file(file)), None))
    assert "is not signed" in error.message
    bare = refused(file, saying(sha256_file(file)))
    assert "it has no signature" in bare.cause


@pytest.mark.parametrize("part", ["payload", "sig"])
def test_a_byte_changed_anywhere_in_it_is_refused(file: Path, part: str) -> None:
    data = json.loads(line(saying(sha256_file(file))))
    row = data if part == "payload" else data["signatures"][0]
    raw = bytearray(base64.b64decode(row[part]))
    raw[len(raw) // 2] ^= 1
    row[part] = base64.b64encode(raw).decode()
    assert "the signature is invalid" in refused(file, json.dumps(data).encode()).message


def test_a_signed_statement_of_another_kind_is_refused(file: Path) -> None:
    error = refused(file, line(saying(sha256_file(file), predicateType="https://spdx.dev/Document")))
    assert isinstance(error, CheckError)
    assert "does not say how a file was built" in error.message
    assert "https://spdx.dev/Document" in error.cause
    other = envelope.Signed(payload=saying(sha256_file(file)), payload_type="text/plain")
    signature = ALICE.sign(envelope.pae(other.payload, other.payload_type))
    signed = envelope.Signed(
        payload=other.payload,
        payload_type=other.payload_type,
        signatures=((signature.keyid, bytes.fromhex(signature.signature)),),
    )
    assert "text/plain" in refused(file, envelope.as_line(signed)).cause


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"\xff\xfe", "codec"),
        (b"{", "Expecting"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"payload": "", "payload": "", "payloadType": "", "signatures": []}', "twice"),
        (b'{"payload": "!", "payloadType": "", "signatures": []}', "base64"),
        (b'{"payload": 1, "payloadType": "", "signatures": []}', "is missing"),
        (b'{"payload": "", "payloadType": "", "signatures": [3]}', "has the wrong format"),
        (b'{"payload": "", "payloadType": "", "signatures": NaN}', "is not JSON"),
        (b'{"n": ' + b"9" * 5000 + b"}", "digits"),
        (b"\n" * 101, "made to exhaust this machine"),
    ],
    ids=lambda value: value if isinstance(value, str) else "data",
)
def test_what_is_no_statement_is_said_to_be_none(file: Path, data: bytes, why: str) -> None:
    error = refused(file, data)
    assert isinstance(error, InputError)
    assert why in error.cause


def test_a_huge_file_is_refused_before_it_is_read(file: Path) -> None:
    path = write(file)
    with path.open("wb") as opened:
        opened.truncate(1024**3)
    with pytest.raises(InputError, match="too much for a valid file of statements"):
        verify(file, path, [ALICE.public_key])


@given(data=st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_whatever_a_stranger_writes_is_refused_in_words(
    data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("hostile") / "file.whl"
    file.write_bytes(b"x")
    assert refused(file, data).next_step


@given(payload=json_values)
def test_whatever_is_signed_is_told_or_refused_in_words(
    payload: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("hostile") / "file.whl"
    file.write_bytes(b"x")
    assert refused(file, line(json.dumps(payload).encode())).next_step
    if isinstance(payload, dict):
        told(payload | {"_type": statement.STATEMENT, "predicate": payload, "subject": payload})


# keys


def test_a_key_is_the_users_alone_and_is_never_overwritten(tmp_path: Path) -> None:
    made = make_key()
    assert made.private == tmp_path / "home" / "attest.key"
    assert made.public == tmp_path / "home" / "attest.pub"
    assert made.private.stat().st_mode & 0o777 == 0o600
    assert public_key(made.public).keyid == made.keyid
    with pytest.raises(InputError, match="already exists"):
        make_key()


def test_a_key_has_the_same_form_where_it_is_made_and_where_it_verifies(file: Path) -> None:
    """verify showed a part of the key's id, and no person could compare that."""
    made = make_key()
    write(file, line(saying(sha256_file(file)), signer_of(made.private)))
    shown = CliRunner().invoke(cli, ["attest", "verify", str(file), "--key", str(made.public)])
    assert shown.exit_code == 0, shown.output
    assert f"is what the key {fingerprint(made.public.read_bytes())} signed" in shown.output


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    made = make_key(tmp_path / "a.key")
    made.private.chmod(0o640)
    with pytest.raises(InputError, match="is readable by other users"):
        signer_of(made.private)


def test_a_key_with_a_passphrase_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_key(tmp_path / "a.key", "secret")
    assert b"ENCRYPTED" in made.private.read_bytes()
    with pytest.raises(InputError, match="is encrypted"):
        signer_of(made.private)
    monkeypatch.setenv(PASSPHRASE, "wrong")
    with pytest.raises(InputError, match="is not a private key that can sign"):
        signer_of(made.private)
    monkeypatch.setenv(PASSPHRASE, "secret")
    assert signer_of(made.private).public_key.keyid == made.keyid
    assert signer_of(make_key(tmp_path / "b.key").private)


def test_a_key_is_taken_by_path_by_variable_or_from_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chosen() is None
    own = make_key()
    assert chosen() == own.private
    other = make_key(tmp_path / "other.key")
    monkeypatch.setenv(KEY, str(other.private))
    assert chosen() == other.private
    assert chosen(own.private) == own.private
    monkeypatch.setenv(KEY, own.private.read_text())
    found = chosen()
    assert isinstance(found, str)
    assert signer_of(found).public_key.keyid == own.keyid


@pytest.mark.parametrize(
    "data", [b"", b"text", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_what_is_no_key_is_said_to_be_none(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.key"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises(InputError, match="is not a private key that can sign"):
        signer_of(path)
    with pytest.raises(InputError):
        public_key(path)


# what this machine built


def test_what_this_machine_built_is_attested_and_verified(home: Home, tmp_path: Path) -> None:
    path = make_workplace(home, tmp_path).lay_out()[BETA].path
    made = make_key(tmp_path / "mine.key")
    statements, keyid = attest(path, home, made.private)
    assert keyid == made.keyid
    found = verify(path, statements, [public_key(made.public)])
    assert found.told.component == "beta"
    assert [uri for uri, _ in found.told.sources] == [
        "pkg:deb/debian/beta@1.0-2?arch=source&distro=debian-trixie"
    ]
    assert found.told.packages == 2


def test_what_this_machine_did_not_build_is_not_attested(home: Home, file: Path) -> None:
    with pytest.raises(InputError, match="has no record of how"):
        attest(file, home, None)
    with pytest.raises(InputError, match="there is no statement next to"):
        statements_of(file)


def test_a_statement_is_read_without_being_checked(file: Path) -> None:
    (one,) = envelope.read_envelopes(write(file, line(saying("0" * 64), None)))
    assert told(read_statement(one)).subjects == (statement.Thing(name="file.whl", sha256="0" * 64),)


def test_completion_offers_verbs_files_and_stacks() -> None:
    def offered(*words: str) -> set[tuple[str, str]]:
        found = ShellComplete(cli, {}, "rocwright", "X").get_completions(list(words[:-1]), words[-1])
        return {(one.type, one.value) for one in found}

    assert {("plain", "verify"), ("plain", "key"), ("file", "")} <= offered("attest", "")
    assert {("plain", "diff"), ("plain", "gfx-smoke"), ("file", "")} <= offered("sbom", "")
    assert ("file", "x") in offered("attest", "verify", "x")
    assert ("plain", "--key") in offered("attest", "some.whl", "--")
