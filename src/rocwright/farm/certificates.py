"""The certificates of a farm: one for all of its machines, signed by a key that nobody keeps."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rocbase.errors import InputError
from rocbase.files.atomic import write_atomic

CA, CERTIFICATE, KEY = "ca.pem", "farm.pem", "farm.key"
DAYS = 5 * 365


def make_certificates(folder: Path) -> None:
    """Make `ca.pem`, `farm.pem` and `farm.key` (mode 0600) in a folder. Whoever has the key is of the farm.

    Raises InputError where one of them is there: the machines that have the others would not be let in.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    for name in (CA, CERTIFICATE, KEY):
        if (folder / name).exists():
            raise InputError(
                f"{folder / name} already exists",
                cause="new certificates would shut out the machines that have the old ones",
                next_step=f"copy {folder} to the other machines; or name another folder",
            )
    moment = datetime.now(UTC)

    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    def certificate(subject: str, public: ec.EllipticCurvePublicKey, *, ca: bool) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(named(subject))
            .issuer_name(named("rocwright farm CA"))
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(moment - timedelta(days=1))
            .not_valid_after(moment + timedelta(days=DAYS))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=0 if ca else None), critical=True)
        )

    signing, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    root = (
        certificate("rocwright farm CA", signing.public_key(), ca=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(signing.public_key()), critical=False)
        .sign(signing, hashes.SHA256())
    )
    node = (
        certificate("rocwright farm", key.public_key(), ca=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False
        )
        .sign(signing, hashes.SHA256())
    )
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / KEY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
    write_atomic(folder / CERTIFICATE, node.public_bytes(serialization.Encoding.PEM))
    write_atomic(folder / CA, root.public_bytes(serialization.Encoding.PEM))
