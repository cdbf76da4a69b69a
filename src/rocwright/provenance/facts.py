"""How packages of each manager and base are named in a package URL, and which are compilers: data."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated, Self

from pydantic import Field, model_validator

from rocbase.model import Frozen
from rocbase.toml.read import Reader, parse
from rocwright.catalog.folders import catalog_folders

NonEmpty = Annotated[str, Field(min_length=1)]


class Manager(Frozen):
    """A package manager's type of package URL.

    `asked` is the regular expression of what the manager is asked for to get a package: groups `name`,
    `version`, and `epoch` and `arch` where it has them; `example` is such a text.
    """

    name: NonEmpty
    type: NonEmpty
    asked: NonEmpty
    example: NonEmpty
    source: NonEmpty

    @model_validator(mode="after")
    def _reads_its_example(self) -> Self:
        try:
            match = re.fullmatch(self.asked, self.example)
        except re.error as error:
            raise ValueError(f"asked: no regular expression: {error}") from error
        if match is None or not {"name", "version"} <= match.groupdict().keys():
            raise ValueError(f"asked: does not give the name and version of {self.example!r}")
        return self

    def read(self, spec: str) -> dict[str, str]:
        """Name, version, and epoch and arch where they are told; empty where it is something else."""
        match = re.fullmatch(self.asked, spec)
        return {key: value for key, value in match.groupdict().items() if value} if match else {}


class Distribution(Frozen):
    """Whose packages a base has: `base` is a glob of base:release; `{release}` is filled in in `name`."""

    base: NonEmpty
    vendor: NonEmpty
    name: NonEmpty
    source: NonEmpty


class Forge(Frozen):
    """A host of git repositories that has a type of package URL of its own."""

    host: NonEmpty
    type: NonEmpty
    source: NonEmpty


class Toolchain(Frozen):
    """Names of packages that are compilers, linkers or what drives them, as regular expressions of whole
    names; each of `examples` is one, none of `no_match` is."""

    packages: tuple[NonEmpty, ...] = ()
    examples: tuple[NonEmpty, ...] = ()
    no_match: tuple[NonEmpty, ...] = ()
    source: NonEmpty

    @model_validator(mode="after")
    def _keeps_its_examples(self) -> Self:
        try:
            wrong = [example for example in self.examples if not self.has(example)]
            wrong += [example for example in self.no_match if self.has(example)]
        except re.error as error:
            raise ValueError(f"packages: no regular expression: {error}") from error
        if wrong:
            raise ValueError(f"packages: is wrong about {', '.join(wrong)}")
        return self

    def has(self, package: str) -> bool:
        """Whether a package is one of them."""
        return any(re.fullmatch(pattern, package) for pattern in self.packages)


class Classifiers(Frozen):
    """Classifiers that name one licence: each without its "License :: ", and the SPDX identifier."""

    names: tuple[tuple[NonEmpty, NonEmpty], ...]
    source: NonEmpty


class ProjectLibraries(Frozen):
    """Libraries (patterns of file names up to `.so`) of a project that is called otherwise; `also` are names
    that SBOMs have for the project."""

    project: NonEmpty
    libraries: tuple[NonEmpty, ...] = Field(min_length=1)
    also: tuple[NonEmpty, ...] = ()
    source: NonEmpty


class PackageNamesFile(Frozen):
    """package_names.toml."""

    manager: tuple[Manager, ...] = ()
    distribution: tuple[Distribution, ...] = ()
    forge: tuple[Forge, ...] = ()
    toolchain: Toolchain | None = None
    classifiers: Classifiers | None = None
    library: tuple[ProjectLibraries, ...] = ()


class Facts(Frozen):
    """All that is known, the user's own tables first."""

    managers: dict[str, Manager]
    distributions: tuple[Distribution, ...]
    forges: dict[str, str]
    toolchains: tuple[Toolchain, ...]
    licences: dict[str, str]
    libraries: tuple[ProjectLibraries, ...]

    def project_of(self, library: str) -> ProjectLibraries | None:
        """The project that a library is of, by its name up to `.so`, where the table has it."""
        return next(
            (
                project
                for project in self.libraries
                if any(fnmatchcase(library, name) for name in project.libraries)
            ),
            None,
        )

    def distribution(self, base: str, release: str) -> tuple[str, str]:
        """Vendor and name of the distribution that a base's packages are of; its own where none is told."""
        for distribution in self.distributions:
            if fnmatchcase(f"{base}:{release}", distribution.base):
                return distribution.vendor, distribution.name.replace("{release}", release)
        return base, f"{base}-{release}"

    def compiles(self, package: str) -> bool:
        """Whether a package is part of a toolchain."""
        return any(toolchain.has(package) for toolchain in self.toolchains)

    def licence_of(self, classifier: str) -> str:
        """The SPDX identifier that a classifier of Python packages means; where it is not exact, its last
        words."""
        name = classifier.removeprefix("License :: ")
        return self.licences.get(name, name.rpartition(" :: ")[2])


@cache
def the_facts() -> Facts:
    """The table of the catalog; a user's own stands over it. Raises InputError."""
    reader = Reader(catalog_folders())
    tables = [
        parse(PackageNamesFile, reader.data(path), path) for path in reader.layers("package_names.toml")
    ]
    return Facts(
        managers={manager.name: manager for table in tables for manager in table.manager},
        distributions=tuple(
            distribution for table in reversed(tables) for distribution in table.distribution
        ),
        forges={forge.host: forge.type for table in tables for forge in table.forge},
        toolchains=tuple(table.toolchain for table in tables if table.toolchain),
        licences={
            name: licence
            for table in tables
            if table.classifiers
            for name, licence in table.classifiers.names
        },
        libraries=tuple(library for table in reversed(tables) for library in table.library),
    )
