"""`config.toml`: the settings of this machine, all of them optional."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import field_validator

from rocwheel.errors import InputError
from rocwheel.model import Frozen
from rocwheel.toml.read import parse, read_toml

if TYPE_CHECKING:
    from rocwright.home import Home
    from rocwright.store import Store


class Config(Frozen):
    """`mirrors` are prefixes of addresses and what stands in for each; `records` is where the records are
    kept, a `postgresql://` URL or a file; nothing: a file in the home folder. `store` is where artifacts are
    kept, a folder or the URL of a store that is known (`rocwright.store`); nothing: the home folder."""

    mirrors: dict[str, str] = {}
    records: str = ""
    store: str = ""

    @field_validator("mirrors")
    @classmethod
    def _are_addresses(cls, mirrors: dict[str, str]) -> dict[str, str]:
        for prefix, replacement in mirrors.items():
            for text in (prefix, replacement):
                if not text or text.startswith("-") or any(sign.isspace() for sign in text):
                    raise ValueError(f"{text!r} is not the beginning of an address")
        return mirrors


def config_file() -> Path:
    """`$ROCWRIGHT_HOME/config.toml` where that is set, else `$XDG_CONFIG_HOME/rocwright/config.toml`."""
    home = os.environ.get("ROCWRIGHT_HOME")
    if home:
        return Path(home).absolute() / "config.toml"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "rocwright" / "config.toml"


def config() -> Config:
    """The settings, as the file says. Raises InputError where it does not say what it must."""
    path = config_file()
    return parse(Config, read_toml(path), path) if path.exists() else Config()


def trust_file() -> Path:
    """Where it stands whose builds are taken for one's own: beside `config.toml`."""
    return config_file().with_name("trust.toml")


def store_of(home: Home) -> Store:
    """The store that goes with a home folder: the one that the settings of this machine name, else its own,
    and behind it the shared stores that are trusted.

    A home folder that is not this machine's, such as that of a second build, has its own in any case, and
    nothing behind it. Raises InputError for a URL of a scheme that no store has.
    """
    from rocwright.store import open_store

    if home != home.default():
        return open_store(home.store)
    named, trust = config().store, trust_file()
    if "://" not in named:
        place = Path(named).expanduser() if named else home.store
        return _in_front(place, trust, trust.stat().st_mtime_ns) if trust.exists() else open_store(place)
    try:
        return open_store(named)
    except InputError as error:
        error.detail = error.detail or f"it stands in {config_file()}"
        raise


@cache
def _in_front(place: Path, trust: Path, changed: int) -> Store:
    """The store of a folder in front of those that a file trusts, as it was then. What they answered is kept
    for the life of this process."""
    from rocwright.store.trust import read_trust

    said = read_trust(trust)
    if not said.store:
        from rocwright.store import open_store

        return open_store(place)
    from rocwright.store import open_sharing

    return open_sharing(place, said)


def store_folder(home: Home) -> Path:
    """Where the store takes room on this machine: its folder, or that of the home for what is elsewhere."""
    told = Path(str(store_of(home)))
    return told if told.is_absolute() else home.store
