"""Who may speak with a coordinator: those with a certificate of the farm, or programs of this user."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from rocbase.errors import InputError
from rocbase.http.address import split
from rocwright.farm.certificates import CA, CERTIFICATE, KEY, make_certificates
from rocwright.sandbox import state

if TYPE_CHECKING:
    from distributed.security import Security

    from rocwright.config import Farm

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def security_of(settings: Farm) -> Security:
    """Return mutual TLS by the certificates that are set, or on this machine by those of this user.

    Whoever reaches a coordinator can run any program on all of its workers, so the loopback asks for a
    certificate too: other users of the machine reach it. Raises InputError for a coordinator elsewhere
    without certificates, an address without
    encryption, and for a missing file.
    """
    from distributed.security import Security

    if split(settings.scheduler).scheme == "tcp":
        raise InputError(
            f"{settings.scheduler} is an address without encryption",
            cause="everything on the way could run programs on all workers, so no coordinator has one",
            next_step="use the address that `rocwright farm up` printed: tls://HOST:PORT",
        )
    if settings.certificates:
        folder = Path(settings.certificates).expanduser()
    else:
        check_loopback(split(settings.scheduler).hostname or LOOPBACK[0])
        folder = _own_certificates()
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


def _own_certificates() -> Path:
    """Return the folder with this user's certificates for this machine, made if they are missing."""
    folder = state.home() / "farm"
    with FileLock(folder.with_suffix(".lock"), mode=0o600):
        if not folder.exists():
            new = folder.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(mode=0o700)
            make_certificates(new)
            new.rename(folder)
    return folder


def check_loopback(host: str) -> None:
    """Raise InputError for an address of the network: it takes certificates."""
    if host not in LOOPBACK:
        raise InputError(
            f"{host} can be reached by others, and the farm has no certificates",
            cause="whoever reaches a coordinator can run any program on all of its workers",
            next_step="rocwright farm init makes them; config.toml names the folder: [farm] certificates",
        )
