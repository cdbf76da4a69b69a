"""Mirrors: one setting that maps address prefixes to local folders or other hosts.

A mirror says where something is to be had on this machine, never what it is: locks and keys keep the
addresses of the publishers, and their commits, digests and hashes decide.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from rocbase.errors import InputError
from rocwright.config import config, config_file

# How addresses of folders of this machine begin.
LOCAL = ("/", "file:")

# PREFIX=REPLACEMENT, any number of them with spaces between; each stands over the file's.
VARIABLE = "ROCWRIGHT_MIRRORS"


@dataclass(frozen=True, slots=True)
class Mirrors:
    """Prefixes of addresses and what stands in for each."""

    table: Mapping[str, str]

    def at(self, address: str) -> str:
        """Where `address` is to be had here: its longest known prefix replaced, or the address as it is.

        Raises InputError for an address that leads out of the folder of a mirror.
        """
        prefix = max(
            (candidate for candidate in self.table if address.startswith(candidate)), key=len, default=""
        )
        if not prefix:
            return address
        suffix = address.removeprefix(prefix)
        if self.table[prefix].startswith(LOCAL) and ".." in unquote(suffix).split("/"):
            raise InputError(
                f"{address} leads out of the mirror {self.table[prefix]}",
                cause="it has `..` behind the prefix that the mirror stands in for",
                next_step="do not use this address: correct it in the recipe or in the lock",
            )
        return self.table[prefix] + suffix

    def holds(self, path: str) -> bool:
        """Return whether a path, or a file: URL, lies in the folder of a mirror."""
        place = os.path.realpath(path.removeprefix("file://"))
        folders = (to.removeprefix("file://") for to in self.table.values() if to.startswith(LOCAL))
        return any(Path(place).is_relative_to(os.path.realpath(folder)) for folder in folders)

    def for_git(self, environment: Mapping[str, str]) -> dict[str, str]:
        """`environment` for git, which then follows the mirrors itself, in submodules too."""
        settings = [(f"url.{to}.insteadOf", prefix) for prefix, to in sorted(self.table.items())]
        if any(to.startswith(LOCAL) for to in self.table.values()):
            # a folder that somebody named as a mirror may stand in for a submodule
            settings.append(("protocol.file.allow", "always"))
        return with_settings(environment, settings)


def with_settings(environment: Mapping[str, str], settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """`environment` for git with more settings, which stand over those before them and over the user's."""
    have = int(environment.get("GIT_CONFIG_COUNT", "0") or 0)
    added: dict[str, str] = {}
    for number, (name, value) in enumerate(settings, have):
        added |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        added["GIT_CONFIG_COUNT"] = str(number + 1)
    return dict(environment) | added


def debian_snapshot(snapshot: str) -> str:
    """Return the address of Debian's archive of a day. Raises InputError if the settings name no mirror."""
    address = config().debian_snapshots
    if not address:
        raise InputError(
            f"the settings name no mirror of Debian's snapshots, and {snapshot} is needed",
            cause=f"{config_file()} has no debian_snapshots",
            next_step='add debian_snapshots = "http://HOST/archive/debian/{snapshot}/" there',
        )
    return address.replace("{snapshot}", snapshot)


def mirrors() -> Mirrors:
    """The mirrors of this machine: those of its config file, and over them those of $ROCWRIGHT_MIRRORS.

    Raises InputError where either does not say what it must.
    """
    return Mirrors(config().mirrors | _from_variable(os.environ.get(VARIABLE, "")))


def _from_variable(text: str) -> dict[str, str]:
    rows = [word.partition("=") for word in text.split()]
    wrong = [prefix for prefix, _, to in rows if not prefix or not to or prefix[0] == "-" or to[0] == "-"]
    if wrong:
        raise InputError(
            f"{VARIABLE} is not a list of mirrors",
            cause=f"{wrong[0]!r} has no replacement address",
            next_step=f"{VARIABLE}='PREFIX=REPLACEMENT PREFIX=REPLACEMENT'",
        )
    return {prefix: to for prefix, _, to in rows}
