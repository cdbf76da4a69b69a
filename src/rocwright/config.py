"""`config.toml`: the settings of this machine, all of them optional."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import field_validator

from rocwheel.model import Frozen
from rocwheel.toml.read import parse, read_toml


class Config(Frozen):
    """`mirrors` are prefixes of addresses and what stands in for each; `records` is where the records are
    kept, a `postgresql://` URL or a file; nothing: a file in the home folder."""

    mirrors: dict[str, str] = {}
    records: str = ""

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
