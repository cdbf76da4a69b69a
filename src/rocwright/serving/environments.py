"""The environments that are there, and which of them was had for what was asked for."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from rocbase.files.atomic import sha256_file, write_atomic
from rocbase.model import Frozen
from rocwright.home import Home

# Where an environment is seen in a run; not in its base, so that nothing of the base is hidden.
PLACE = "/rocwright"

# What environments are made with and programs run in: it starts in milliseconds, and leaves the terminal to
# them.
ENGINE = "bubblewrap"

# In the folder of an environment: what it is, what is seen at PLACE, and the home of what runs in it.
ABOUT, INSIDE, HOME = "environment.json", "inside", "home"


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


def remember(home: Home, digest: str, lock: Path, environment: Environment) -> None:
    """Keep what was had, for as long as the lock is the same."""
    record = {"lock": str(lock), "sha256": sha256_file(lock), "environment": environment.key}
    write_atomic(_answer(home, digest), json.dumps(record) + "\n")


def remembered(home: Home, digest: str) -> Environment | None:
    """What was had for the same; None where it was not, or the lock or the environment is another by now."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        record = json.loads(_answer(home, digest).read_bytes())
        if sha256_file(Path(record["lock"])) == record["sha256"]:
            environment = read(home, str(record["environment"]))
            if environment is not None and (home.roots / environment.root).is_dir():
                return environment
    return None


def _answer(home: Home, digest: str) -> Path:
    return home.environments / "asked" / f"{digest}.json"
