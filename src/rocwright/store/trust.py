"""Whose builds are taken for one's own: trusted keys, the stores that they are looked for in, and what here
came from those who are not trusted any more.

It is kept in `trust.toml`, beside `config.toml`.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, field_validator

from rocbase.errors import InputError
from rocbase.files.atomic import write_atomic
from rocbase.model import Frozen
from rocbase.toml.read import parse, read_toml
from rocwright.store.model import Record, Store, inputs_of, records
from rocwright.store.signed import Time
from rocwright.store.signing.keys import folder, key_of

if TYPE_CHECKING:
    from securesystemslib.signer import SSlibKey

FILE = "trust.toml"
HEAD = "# Written by `rocwright trust`: whose builds are taken here, and where they are looked for.\n\n"

# What a key or a store is called here.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


def trust_file() -> Path:
    """Where it stands whose builds are taken for one's own: beside `config.toml`."""
    return folder() / FILE


class TrustedKey(Frozen):
    """A public key (PEM) and what its owner is called here. What it signed at `revoked` or later is refused;
    "" where it is not revoked."""

    name: Name
    pem: str
    added: Time
    revoked: Annotated[str, Field(pattern=r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)?$")] = ""

    @field_validator("pem")
    @classmethod
    def _is_a_public_key(cls, pem: str) -> str:
        if "PRIVATE" in pem:
            raise ValueError("it is a private key: only the public half belongs here")
        return pem

    @cached_property
    def key(self) -> SSlibKey:
        """Raises InputError where it is none."""
        return key_of(self.pem.encode(), f"the key {self.name}")

    @property
    def keyid(self) -> str:
        return str(self.key.keyid)


class TrustedStore(Frozen):
    """A store to look in. Of a build `agree` trusted keys must have signed the same outputs."""

    name: Name
    url: str
    agree: int = Field(1, ge=1)


class Trust(Frozen):
    """All of it."""

    key: tuple[TrustedKey, ...] = ()
    store: tuple[TrustedStore, ...] = ()

    @property
    def keyids(self) -> frozenset[str]:
        """The ids of the keys that are not revoked."""
        return frozenset(key.keyid for key in self.key if not key.revoked)

    def with_key(self, key: TrustedKey) -> Trust:
        """With a key more. Raises InputError for a name that another key has; a known key keeps its place."""
        if any(existing.keyid == key.keyid and not existing.revoked for existing in self.key):
            return self
        if any(existing.name == key.name for existing in self.key):
            raise InputError(
                f"another key is called {key.name} already",
                cause="each name stands for one key",
                next_step=f"give it another name, or remove that one: rocwright trust remove {key.name}",
            )
        return self.model_copy(update={"key": (*self.key, key)})

    def with_store(self, store: TrustedStore) -> Trust:
        """With a store; one of the same name is replaced."""
        stores = (existing for existing in self.store if existing.name != store.name)
        return self.model_copy(update={"store": (*stores, store)})

    def without(self, name: str) -> Trust:
        """Without the key or store of that name. Raises InputError for a name that is not there."""
        self._check_known(name)
        return Trust(
            key=tuple(key for key in self.key if key.name != name),
            store=tuple(store for store in self.store if store.name != name),
        )

    def revoked(self, name: str, since: str) -> Trust:
        """With a key refused for what it signed at a time or later. Raises InputError."""
        self._check_known(name, keys_only=True)
        keys = (key.model_copy(update={"revoked": since}) if key.name == name else key for key in self.key)
        return self.model_copy(update={"key": tuple(keys)})

    def _check_known(self, name: str, *, keys_only: bool = False) -> None:
        names = [key.name for key in self.key] + ([] if keys_only else [store.name for store in self.store])
        if name not in names:
            names = list(dict.fromkeys(names))
            raise InputError(
                f"nothing that is trusted is called {name}",
                cause=f"there are {', '.join(names)}" if names else "nothing is trusted yet",
                next_step="rocwright trust list shows what is",
            )


def read_trust(path: Path) -> Trust:
    """What a file says; nothing where there is none. Raises InputError."""
    if not path.exists():
        return Trust()
    return parse(Trust, read_toml(path), path)


def write_trust(path: Path, trust: Trust) -> None:
    """Write a file whole, or not at all."""
    import tomlkit

    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, HEAD + tomlkit.dumps(trust.model_dump(mode="json")))


def untrusted(store: Store, trust: Trust) -> dict[str, str]:
    """Records, by key, that came from a key that is not trusted now, or that were made of what such gave."""
    doubtful = {record.key: reason for record in records(store) if (reason := _doubt(record, trust))}
    named = {record.key: record.step for record in records(store)}
    while derived := {
        key: f"{step}: made of {named[source]}, which came from a key that is not trusted"
        for key, step in named.items()
        if key not in doubtful
        and (source := next((made for made in inputs_of(store, key) if made in doubtful), ""))
    }:
        doubtful |= derived
    return doubtful


def _doubt(record: Record, trust: Trust) -> str:
    """Why what signed a record does not count any more; "" where it does, or where it ran here."""
    origin = record.origin
    if origin is None:
        return ""
    key = next((trusted for trusted in trust.key if trusted.keyid == origin.keyid), None)
    if key is None:
        return f"{record.step}: {origin}: that key is not trusted any more"
    if key.revoked and origin.signed >= key.revoked:
        return f"{record.step}: {origin}: that key is revoked since {key.revoked}"
    return ""
