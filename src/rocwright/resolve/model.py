"""What a user asks for, and the lock that answers it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rocwright.models import Frozen
from rocwright.plan.model import FilePin, Word

LOCK_SCHEMA = 1


class Request(Frozen):
    """`rocwright.toml`: this stack, for these GPUs, on this base; `versions` pins components."""

    stack: str
    gpu: tuple[str, ...] = Field(min_length=1)
    base: str
    versions: dict[str, str] = {}


class LockedRoot(Frozen):
    """A root file system: the exact packages of `suite`. `role` is build, run or check.

    `wanted` are the packages that recipes ask for; the rest of `packages` is what these need.
    """

    role: Literal["build", "run", "check"]
    base: str
    manager: str
    suite: Word
    architecture: Word
    wanted: tuple[str, ...] = ()
    packages: tuple[FilePin, ...]


class LockedComponent(Frozen):
    """A component's exact source. `place` says which place was taken, `passed_over` why not another."""

    name: str
    version: str
    place: str
    passed_over: tuple[str, ...] = ()
    subdir: str = ""
    series: tuple[str, ...] = ()
    files: tuple[FilePin, ...]


class Lock(Frozen):
    """`rocwright.lock`: one exact version of everything."""

    schema_version: int = Field(default=LOCK_SCHEMA, alias="schema")
    rocwright: str
    created: str
    request: Request
    provided: dict[str, str] = {}
    roots: tuple[LockedRoot, ...]
    components: tuple[LockedComponent, ...]

    def root(self, role: str) -> LockedRoot | None:
        """The root file system of that role, or None where the stack needs none."""
        return next((root for root in self.roots if root.role == role), None)
