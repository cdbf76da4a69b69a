"""Who may speak with a coordinator: those with a certificate of the farm, or programs of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.errors import InputError
from rocwheel.http.address import split
from rocwright.farm.certificates import CA, CERTIFICATE, KEY

if TYPE_CHECKING:
    from distributed.security import Security

    from rocwright.config import Farm

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def security_of(settings: Farm) -> Security | None:
    """Mutual TLS by the certificates that are set; None where there are none.

    Whoever reaches a coordinator can run any program on all of its workers. Raises InputError where it is
    elsewhere and there are no certificates, or one is missing.
    """
    if not settings.certificates:
        check_loopback(split(settings.scheduler).hostname or LOOPBACK[0])
        return None
    from distributed.security import Security

    folder = Path(settings.certificates).expanduser()
    for name in (CA, CERTIFICATE, KEY):
        if not (folder / name).is_file():
            raise InputError(
                f"{folder} has no {name}",
                cause="config.toml names that folder for the certificates of the farm",
                next_step=f"rocwright farm init {folder} makes them; copy the folder to every machine of it",
            )
    roles = ("scheduler", "worker", "client")
    certificates = {f"tls_{role}_cert": str(folder / CERTIFICATE) for role in roles}
    keys = {f"tls_{role}_key": str(folder / KEY) for role in roles}
    return Security(require_encryption=True, tls_ca_file=str(folder / CA), **certificates, **keys)


def check_loopback(host: str) -> None:
    """Raise InputError for an address of the network: it takes certificates."""
    if host not in LOOPBACK:
        raise InputError(
            f"{host} can be reached by others, and the farm has no certificates",
            cause="whoever reaches a coordinator can run any program on all of its workers",
            next_step="rocwright farm init makes them; config.toml names the folder: [farm] certificates",
        )
