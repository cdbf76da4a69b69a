"""What Python packages bring to a machine with an AMD GPU: the table python_packages.toml."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rocbase.model import Frozen
from rocbase.toml.read import Reader, parse
from rocwright.catalog.folders import catalog_folders

TABLE = "python_packages.toml"
Words = Annotated[str, Field(min_length=1)]
Globs = Annotated[tuple[Words, ...], Field(min_length=1)]


class PackageFact(Frozen):
    """What the packages of some `names` (globs) are on an AMD GPU, and what to write instead.

    `brings` says what an installer would take for them; without it their files must show that. With `extras`
    (globs) the row is for requirements that ask for such an extra. `component` publishes wheels for ROCm,
    `stack` is built for a GPU that these wheels do not serve, `write` is a requirement that does the same.
    `advice` is for those who have none of these. A package that requires a `part` of CUDA cannot run either.
    """

    names: Globs
    extras: tuple[Words, ...] = ()
    brings: str = ""
    grade: Literal["error", "warning"] = "error"
    component: str = ""
    stack: str = ""
    write: str = ""
    advice: str = ""
    part: bool = False
    source: Words


class Build(Frozen):
    """What shows that a file is a build for CUDA, the CPU or ROCm.

    `tags` are globs of local versions (cu121 of 2.5.1+cu121), `addresses` of package indexes, and `files` of
    paths in a wheel. `runtime` are paths of the runtime library: two packages that bring it are two copies.
    `versions` are packages whose version is that of ROCm.
    """

    name: Literal["CUDA", "CPU", "ROCm"]
    tags: Globs
    addresses: Globs
    files: tuple[Words, ...] = ()
    runtime: tuple[Words, ...] = ()
    versions: tuple[Words, ...] = ()
    source: Words


class PythonPackagesFile(Frozen):
    """python_packages.toml. `conda` maps names of conda packages to those of the Python index."""

    build: tuple[Build, ...]
    package: tuple[PackageFact, ...]
    conda: dict[str, Words] = {}

    @model_validator(mode="after")
    def _has_each_build_once(self) -> Self:
        if sorted(build.name for build in self.build) != ["CPU", "CUDA", "ROCm"]:
            raise ValueError("it needs one [[build]] each of CPU, CUDA and ROCm")
        return self

    def fact(self, name: str, extras: Iterable[str] = ()) -> PackageFact | None:
        """Return the first row for a package, by its normal name, with these extras."""
        for row in self.package:
            wanted_extra = not row.extras or any(matches(extra, row.extras) for extra in extras)
            if wanted_extra and matches(name, row.names):
                return row
        return None

    def build_of(self, *, tag: str = "", address: str = "") -> str:
        """Return what a local version or the address of an index shows: CUDA, CPU, ROCm or nothing."""
        for build in self.build:
            if (tag and matches(tag, build.tags)) or (address and matches(address, build.addresses)):
                return build.name
        return ""

    def named(self, name: str) -> Build:
        """Return what shows a build of that name."""
        return next(build for build in self.build if build.name == name)


def matches(text: str, globs: Iterable[str]) -> bool:
    """Return whether one of the globs is for a text."""
    return any(fnmatchcase(text, glob) for glob in globs)


def package_facts() -> PythonPackagesFile:
    """Return the table of the catalog in use. Raises InputError if it is wrong."""
    return _load(catalog_folders())


@cache
def _load(folders: tuple[Path, ...]) -> PythonPackagesFile:
    reader = Reader(folders)
    path = reader.layers(TABLE)[-1]
    return parse(PythonPackagesFile, reader.data(path), path)
