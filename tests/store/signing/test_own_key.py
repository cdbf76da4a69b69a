"""The user's own key: where it is made and looked for, which halves are taken, and what never is told."""

from __future__ import annotations

import os
import stat
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from rocbase.errors import InputError
from rocwright.store.signing.keys import (
    KEY,
    LARGEST_KEY,
    PASSPHRASE,
    chosen,
    fingerprint,
    folder,
    make_key,
    own_public_key,
    pem_of,
    public_key,
    signer_of,
)


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of settings, of a user who has no key yet and names no home."""
    for name in ("ROCWRIGHT_HOME", KEY, PASSPHRASE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    return tmp_path / "settings/rocwright"


@pytest.fixture(scope="module")
def settings_of_modules() -> str:
    return os.environ.get("XDG_CONFIG_HOME", "")


def test_fixtures_of_modules_see_no_key_of_the_users(settings_of_modules: str) -> None:
    assert settings_of_modules and not Path(settings_of_modules).is_relative_to(Path.home() / ".config")


def pem(passphrase: bytes = b"") -> str:
    how = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how).decode()


def test_a_key_is_made_among_the_settings_with_both_halves_and_found_there(settings: Path) -> None:
    assert (chosen(), own_public_key()) == (None, None)
    made = make_key()
    assert (made.private, made.public) == (settings / "attest.key", settings / "attest.pub")
    assert stat.S_IMODE(made.private.stat().st_mode) == 0o600
    assert (chosen(), own_public_key()) == (made.private, made.public)
    assert signer_of(made.private).public_key.keyid == public_key(made.public).keyid == made.keyid
    assert public_key(made.private).keyid == made.keyid
    assert pem_of(signer_of(made.private)) == made.public.read_bytes()


def test_settings_are_those_of_the_home_folder_if_no_other_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folder() == tmp_path / ".config/rocwright"


def test_a_key_is_made_in_folders_that_are_not_there_yet(tmp_path: Path) -> None:
    made = make_key(tmp_path / "a/b/my.key")
    assert made.public == tmp_path / "a/b/my.pub"
    assert signer_of(made.private).public_key.keyid == made.keyid


@pytest.mark.parametrize("half", ["my.key", "my.pub"])
def test_no_half_of_a_key_is_written_over(tmp_path: Path, half: str) -> None:
    (tmp_path / half).write_text("another key")
    with pytest.raises(InputError, match=f"{half} already exists"):
        make_key(tmp_path / "my.key")
    assert [path.name for path in tmp_path.iterdir()] == [half]
    assert (tmp_path / half).read_text() == "another key"


def test_a_key_of_the_environment_signs_and_its_text_is_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    text = pem()
    monkeypatch.setenv(KEY, f"\n{text}")
    key = chosen()
    assert isinstance(key, str)
    assert signer_of(key).public_key.keytype == "ed25519"
    broken = text.replace("\n", "\nAAAA", 1)
    with pytest.raises(InputError, match=f"^the key in {KEY} is not a private key that can sign") as refused:
        signer_of(broken)
    told = " ".join(refused.value.as_dict().values())
    assert not any(line in told for line in text.splitlines()[1:-1])


def test_a_key_that_is_named_and_not_there_says_who_named_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, str(tmp_path / "one.key"))
    with pytest.raises(InputError, match=r"there is no key .*one\.key") as refused:
        chosen()
    assert refused.value.cause == f"{KEY} names it"
    with pytest.raises(InputError, match=r"there is no key .*other\.key") as refused:
        chosen(tmp_path / "other.key")
    assert refused.value.cause == "it was named on the command line"
    assert "attest key" in refused.value.next_step


def test_an_encrypted_key_wants_its_passphrase_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    text = pem(b"right")
    with pytest.raises(InputError, match="is encrypted") as refused:
        signer_of(text)
    assert PASSPHRASE in refused.value.next_step
    monkeypatch.setenv(PASSPHRASE, "wrong")
    with pytest.raises(InputError, match="is not a private key that can sign") as refused:
        signer_of(text)
    assert "or the passphrase is wrong" in refused.value.cause
    monkeypatch.setenv(PASSPHRASE, "right")
    assert signer_of(text).public_key.keytype == "ed25519"
    assert signer_of(pem()).public_key.keytype == "ed25519", "one without a passphrase is taken all the same"


def test_an_encrypted_key_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_key(tmp_path / "my.key", "words of mine")
    assert "ENCRYPTED" in made.private.read_text()
    with pytest.raises(InputError, match="is encrypted"):
        signer_of(made.private)
    monkeypatch.setenv(PASSPHRASE, "words of mine")
    assert signer_of(made.private).public_key.keyid == made.keyid


def test_a_key_that_cannot_sign_is_refused() -> None:
    key = X25519PrivateKey.generate()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    with pytest.raises(InputError, match="is not a private key that can sign") as refused:
        signer_of(text)
    assert "passphrase" not in refused.value.cause


@pytest.mark.parametrize("take", [signer_of, public_key])
def test_a_file_that_is_no_key_is_refused_by_its_name(tmp_path: Path, take: object) -> None:
    path = tmp_path / "my.key"
    path.write_bytes(b"x" * LARGEST_KEY)
    path.chmod(0o600)
    assert callable(take)
    with pytest.raises(InputError, match=r"my\.key is no"):
        take(path)
    path.write_bytes(b"x" * (LARGEST_KEY + 1))
    with pytest.raises(InputError, match=r"my\.key has more than 64\.0 KiB, too much for a valid key"):
        take(path)


def test_a_fingerprint_is_the_sha256_of_the_der_in_groups_of_four(tmp_path: Path) -> None:
    key = make_key(tmp_path / "own.key").public
    words = ["openssl", "pkey", "-pubin", "-in", str(key), "-outform", "DER"]
    der = subprocess.run(words, capture_output=True, check=True).stdout
    groups = fingerprint(key.read_bytes()).split(" ")
    assert "".join(groups) == sha256(der).hexdigest()
    assert {len(group) for group in groups} == {4}
