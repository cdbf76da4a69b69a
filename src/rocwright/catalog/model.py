"""The facts of the field as models: what the TOML files of a catalog may say."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, BeforeValidator, Field

from rocwright.errors import InputError
from rocwright.models import Frozen
from rocwright.plan.model import Edit, OutputSpec

_UNITS = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}


def _parse_size(value: object) -> object:
    if not isinstance(value, str):
        return value
    number, _, unit = value.strip().partition(" ")
    if unit not in _UNITS or not re.fullmatch(r"\d+(\.\d+)?", number):
        raise ValueError(f"{value!r} is not a size such as '1.5 GiB'")
    return int(float(number) * _UNITS[unit])


Size = Annotated[int, BeforeValidator(_parse_size), Field(ge=0, strict=True)]
"""Bytes; written in TOML as "1.5 GiB"."""


class Target(Frozen):
    """An AMD GPU processor as LLVM names it, and how the kernel and people name it."""

    name: str
    kfd_version: int
    generation: str
    products: tuple[str, ...]
    pci_ids: tuple[str, ...] = ()
    source: tuple[str, ...]


class GitPlace(Frozen):
    """A release in a git repository."""

    git: str
    tag: str
    commit: str = ""


class IndexPlace(Frozen):
    """A release that lies in a source distribution on the Python package index, perhaps in a folder of it."""

    sdist: str
    version: str
    subdir: str = ""


class DebianPlace(Frozen):
    """A release in the Debian archive's source packages; `series` names the patches of it that are needed."""

    debian: str
    series: tuple[str, ...] = ()


class BuiltinPlace(Frozen):
    """A tree that rocwright carries."""

    builtin: str


Place = GitPlace | IndexPlace | DebianPlace | BuiltinPlace


def _check_version(value: str) -> str:
    try:
        Version(value)
    except InvalidVersion as error:
        raise ValueError(f"{value!r} is not a version such as 0.21.0 (PEP 440)") from error
    return value


class Release(Frozen):
    """One version of a component: the places that have it, in order of trust, and what it needs of others.

    `needs` maps a component to a version specifier, `env` adds to the recipe's environment for this release
    alone; `source` tells where these facts are from.
    """

    version: Annotated[str, AfterValidator(_check_version)]
    places: tuple[Place, ...]
    needs: dict[str, str] = {}
    env: dict[str, str] = {}
    source: str


class SystemNeeds(Frozen):
    """System packages by the catalog's names: to build, to run, and to check."""

    build: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    check: tuple[str, ...] = ()


class Resources(Frozen):
    """What building it takes: memory for one job, disk, wall seconds on two cores; measured, not guessed.

    `limit` ends a build that hangs, in wall seconds.
    """

    memory_per_job: Size = 1024**3
    disk: Size = 1024**3
    seconds: float = 0
    limit: float = 12 * 3600


class Check(Frozen):
    """One statement about the artifacts.

    `machine-code` reads the GPU code in them; `script` runs a program of the catalog in a sandbox, which
    prints a line for each thing it found.
    """

    name: str
    kind: Literal["machine-code", "script"]
    script: str = ""
    arguments: tuple[str, ...] = ()
    env: dict[str, str] = {}
    model: bool = False
    wheels: bool = False
    seconds: float = 900
    why: str = ""


class Image(Frozen):
    """An OCI image of the run-time root file system with the archive unpacked under `prefix`."""

    prefix: str
    entrypoint: tuple[str, ...] = ()
    env: dict[str, str] = {}


class Component(Frozen):
    """One thing built: a recipe that a packager reads once and can change."""

    name: str
    summary: str
    homepage: str = ""
    license: str
    kind: Literal["wheel", "archive"]
    release: tuple[Release, ...]
    system: SystemNeeds = SystemNeeds()
    resources: Resources = Resources()
    env: dict[str, str] = {}
    guard: tuple[str, ...] = ()
    run: tuple[str, ...]
    output: tuple[OutputSpec, ...]
    edit: tuple[Edit, ...] = ()
    check: tuple[Check, ...] = ()
    image: Image | None = None

    def released(self, version: str) -> Release:
        """The release of that version. Raises InputError where the recipe has none."""
        found = {release.version: release for release in self.release}
        if version not in found:
            raise InputError(
                f"{self.name} {version} is not known",
                cause=f"the catalog has {self.name} {', '.join(found)}; the lock was made with another",
                next_step="rocwright lock",
            )
        return found[version]

    @property
    def targets_code(self) -> bool:
        """Whether what is built holds machine code for the GPU asked for."""
        return any("{targets}" in value for value in self.env.values())


class Provided(Frozen):
    """A component that a base brings along: the package, and the component's version in it."""

    package: str
    source: str


class Base(Frozen):
    """An operating system: its family, releases, and what it provides of the stack.

    `compiler_reads` are globs of files that compilers read without telling the compiler cache.
    """

    name: str
    family: Literal["debian"]
    summary: str
    releases: tuple[str, ...]
    architecture: dict[str, str]
    common: tuple[str, ...]
    compiler_reads: tuple[str, ...] = ()
    provides: dict[str, Provided] = {}
    source: str


class Stack(Frozen):
    """A named choice of components that serves a purpose."""

    name: str
    summary: str
    components: tuple[str, ...]
    bases: tuple[str, ...]
    targets: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    source: str


class SystemPackages(Frozen):
    """The catalog's name of a system package -> its names on each family of bases."""

    packages: dict[str, dict[str, tuple[str, ...]]] = Field(default_factory=dict)
