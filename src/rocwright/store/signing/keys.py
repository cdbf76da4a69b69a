"""The user's own signing key: an Ed25519 key in a PEM file of theirs, and the public half beside it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rocbase.errors import InputError
from rocbase.files.atomic import sha256_bytes, write_atomic
from rocwright.store.signing.safe_json import read_bounded

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner, SSlibKey

# The variable that names the private key: a path, or the PEM text itself (for CI).
KEY = "ROCWRIGHT_ATTEST_KEY"

# The variable with the passphrase of an encrypted key.
PASSPHRASE = "ROCWRIGHT_ATTEST_PASSPHRASE"  # noqa: S105 - the name of a variable

PRIVATE, PUBLIC = "attest.key", "attest.pub"
LARGEST_KEY = 64 * 1024
_PEM = "-----BEGIN"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key that was made: its id, and where its halves lie."""

    keyid: str
    private: Path
    public: Path


def folder() -> Path:
    """Where the user's key is made: `$ROCWRIGHT_HOME` where that is set, else the folder of settings."""
    named = os.environ.get("ROCWRIGHT_HOME")
    return Path(named).absolute() if named else _settings()


def _settings() -> Path:
    """`$XDG_CONFIG_HOME/rocwright`, else ~/.config/rocwright."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "rocwright"


def _own(name: str) -> Path | None:
    """The file of that name of the user's own key, wherever it was made."""
    return next((path for path in (folder() / name, _settings() / name) if path.is_file()), None)


def chosen(path: Path | None = None) -> Path | str | None:
    """The private key to sign with: the file named, else the variable's (a path, or the PEM text), else the
    user's own; None where there is none. Raises InputError where one is named that is not there."""
    named = os.environ.get(KEY, "")
    if path is None and named.lstrip().startswith(_PEM):
        return named
    key_path = path or (Path(named).expanduser() if named else None)
    if key_path is not None:
        if not key_path.is_file():
            raise InputError(
                f"there is no key {key_path}",
                cause=f"{KEY} names it" if path is None else "it was named on the command line",
                next_step=f"rocwright attest key {key_path} makes one",
            )
        return key_path
    return _own(PRIVATE)


def make_key(path: Path | None = None, passphrase: str = "") -> NewKey:
    """Make a key: the private half with mode 0600, the public one beside it. Raises InputError where one is
    there already: what was signed with it could not be told from what was not any more."""
    from securesystemslib.signer import CryptoSigner

    private = path or folder() / PRIVATE
    public = private.with_suffix(".pub")
    for target in (private, public):
        if target.exists():
            raise InputError(
                f"{target} already exists",
                cause="a key that is overwritten cannot be recovered",
                next_step="name another path, or move it away first",
            )
    signer = CryptoSigner.generate_ed25519()
    private.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(_encrypted(signer.private_bytes, passphrase))
    write_atomic(public, _public_pem(signer.private_bytes))
    return NewKey(keyid=signer.public_key.keyid, private=private, public=public)


def signer_of(key: Path | str) -> CryptoSigner:
    """What signs with a private key: a file's, or PEM text. Raises InputError where it cannot be used."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from securesystemslib.signer import CryptoSigner

    name = str(key) if isinstance(key, Path) else f"the key in {KEY}"
    if isinstance(key, Path):
        _check_mode(key)
    data = read_bounded(key, LARGEST_KEY, "key") if isinstance(key, Path) else key.encode()
    passphrase = os.environ.get(PASSPHRASE, "").encode() or None
    try:
        try:
            private = load_pem_private_key(data, passphrase)
        except TypeError:
            if passphrase is None:
                raise
            # a passphrase is set for another key; this one has none
            private = load_pem_private_key(data, None)
        return CryptoSigner(private)
    except TypeError as error:
        raise InputError(
            f"{name} is encrypted",
            cause="it has a passphrase, and none was given",
            next_step=f"set {PASSPHRASE} to its passphrase",
        ) from error
    except Exception as error:
        # the library raises ValueError, UnsupportedAlgorithm and its own, none of which says more
        raise InputError(
            f"{name} is not a private key that can sign",
            cause=f"{str(error)[:200] or 'it cannot be read'}"
            + ("; or the passphrase is wrong" if passphrase else ""),
            next_step="rocwright attest key makes one; PEM keys of Ed25519, ECDSA and RSA are supported",
        ) from error


def public_key(path: Path) -> SSlibKey:
    """A public key to verify with, from its PEM file (or a private key's). Raises InputError."""
    data = read_bounded(path, LARGEST_KEY, "key")
    return signer_of(path).public_key if b"PRIVATE KEY" in data else key_of(data, str(path))


def key_of(pem: bytes, name: str) -> SSlibKey:
    """The public key in a PEM text that is called `name` where it is none. Raises InputError."""
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from securesystemslib.signer import SSlibKey

    try:
        return SSlibKey.from_crypto(load_pem_public_key(pem))
    except Exception as error:
        raise InputError(
            f"{name} is not a public key",
            cause=str(error)[:200] or "it cannot be read",
            next_step="name the .pub file that `rocwright attest key` wrote next to the private key",
        ) from error


def pem_of(signer: CryptoSigner) -> bytes:
    """The PEM text of the public half of what signs."""
    return _public_pem(signer.private_bytes)


def fingerprint(pem: bytes) -> str:
    """The sha256 of a public key's DER, in groups of four: what two people compare."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

    der = load_pem_public_key(pem).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    text = sha256_bytes(der)
    return " ".join(text[index : index + 4] for index in range(0, len(text), 4))


def own_public_key() -> Path | None:
    """The user's own public key, where there is one."""
    return _own(PUBLIC)


def _public_pem(pem: bytes) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

    public = load_pem_private_key(pem, None).public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _encrypted(pem: bytes, passphrase: str) -> bytes:
    if not passphrase:
        return pem
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    private = load_pem_private_key(pem, None)
    return private.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(passphrase.encode())
    )


def _check_mode(path: Path) -> None:
    """Raise InputError where others than the owner may read a private key."""
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise InputError(
            f"{path} is readable by other users (mode {mode:04o})",
            cause="anybody who can read it can sign in your name",
            next_step=f"chmod 600 {path}; if others may have copied it, make a new key",
        )
