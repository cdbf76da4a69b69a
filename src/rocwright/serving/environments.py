"""The environments that are there, and which of them was had for what was asked for."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from rocwheel.files.atomic import sha256_bytes, sha256_file, write_atomic
from rocwheel.model import Frozen, canonical_json
from rocwheel.version import __version__
from rocwright.catalog.folders import catalog_folders
from rocwright.home import Home
from rocwright.serving.state import boot_id

PLACE = "/rocwright"
"""Where an environment is seen in a run; not in its base, so that nothing of the base is hidden."""

ENGINE = "bubblewrap"
"""What environments are made with and programs run in: it starts in milliseconds, and leaves the terminal to
them."""

ABOUT, INSIDE, HOME = "environment.json", "inside", "home"
"""In the folder of an environment: what it is, what is seen at PLACE, and the home of what runs in it."""


class Installed(Frozen):
    """A wheel of an environment."""

    filename: str
    sha256: str


class Environment(Frozen):
    """What a wheel stack runs in.

    `root` is the digest of the root file system's archive, `env` are the variables that the stack's GPUs and
    recipes want of a run.
    """

    key: str
    stack: str
    gpu: tuple[str, ...]
    base: str
    root: str
    python: str
    wheels: tuple[Installed, ...]
    env: Mapping[str, str]

    def folder(self, home: Home) -> Path:
        return home.environments / self.key


def read(home: Home, key: str) -> Environment | None:
    """An environment that is there; None where there is none, or it cannot be read."""
    with contextlib.suppress(OSError, ValidationError):
        return Environment.model_validate_json((home.environments / key / ABOUT).read_bytes())
    return None


def asked_for(words: Sequence[object]) -> str:
    """A name for what was asked for, as this rocwright and its catalog understand it until the machine is
    started again; nothing is read of the catalog but when its files changed."""
    stamps = [stamp for folder in catalog_folders() for stamp in _stamps(folder)]
    return sha256_bytes(canonical_json([*words, boot_id(), __version__, stamps]))


def remember(home: Home, asked: str, lock: Path, environment: Environment) -> None:
    """Keep what was had, for as long as the lock is the same."""
    told = {"lock": str(lock), "sha256": sha256_file(lock), "environment": environment.key}
    write_atomic(_answer(home, asked), json.dumps(told) + "\n")


def remembered(home: Home, asked: str) -> Environment | None:
    """What was had for the same; None where it was not, or the lock or the environment is another by now."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        told = json.loads(_answer(home, asked).read_bytes())
        if sha256_file(Path(told["lock"])) == told["sha256"]:
            found = read(home, str(told["environment"]))
            if found is not None and (home.roots / found.root).is_dir():
                return found
    return None


def _answer(home: Home, asked: str) -> Path:
    return home.environments / "asked" / f"{asked}.json"


def _stamps(folder: Path) -> list[tuple[str, int, int]]:
    found, todo = [], [str(folder)]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for one in entries:
                if one.is_dir():
                    todo.append(one.path)
                elif one.name.endswith(".toml"):
                    stat = one.stat()
                    found.append((one.path, stat.st_mtime_ns, stat.st_size))
    return sorted(found)
