"""Operating systems as bases: their package managers, releases, Pythons, and what they bring along."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rocbase.model import Frozen
from rocwright.model.architecture import Architecture
from rocwright.model.steps import Snapshot


class Provided(Frozen):
    """A component that a base brings along: the package whose version counts, or a fixed version.

    With a package, `version` is the one seen when this was written, for who plans without a network. `build`
    and `run` are the system packages, by the catalog's names, that a component needs which builds on it.
    """

    package: str = ""
    version: str = ""
    build: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    source: str

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        if not self.package and not self.version:
            raise ValueError("a package (whose version counts) or a version is needed")
        return self


# How an archive writes its lists of packages.
ListForm = Literal["deb", "rpm", "alpm"]


class PackageManager(Frozen):
    """A package manager as commands to run in a root file system.

    `refresh`, `download` and `fetch` use a network: `download` gets packages and what they need that the root
    has not, `fetch` exactly those named. `install` uses nothing but the folder of downloaded files, `list`
    prints a name and a version a line, `repository` makes the root use a dated snapshot, whose address
    `snapshot` is, `ask` prints what `fetch` is to be asked for to get a file again. In an argument,
    `{folder}`, `{file}` and `{snapshot}` are filled in, in the address `{year}`, `{month}` and `{day}`; the
    argument `{packages}` becomes one for each.
    `lists` prints the addresses of the package lists that a root reads, a line each; `dated_lists` are those
    of a `{snapshot}` for an `{architecture}`; `form` is how they are written.
    `files` is a glob of package files; `env` is the commands' environment; `forget` are globs of what an
    installation leaves in the root that is no part of it. `phases` are patterns of the lines that `install`
    prints about each package, the first when it unpacks it; their group is the package's name. `bootstrap`
    makes a root in the empty folder `{root}` on a machine that has the program `bootstrap_with`, with
    `settings` as the file `{settings}` and from the `{release}` of a base.
    """

    name: str
    refresh: tuple[str, ...]
    download: tuple[str, ...]
    fetch: tuple[str, ...]
    install: tuple[str, ...]
    ask: tuple[str, ...]
    files: str
    env: dict[str, str] = {}
    forget: tuple[str, ...] = ()
    phases: tuple[re.Pattern[str], ...] = ()
    list: tuple[str, ...]
    lists: tuple[str, ...] = ()
    dated_lists: tuple[str, ...] = ()
    form: ListForm | None = None
    snapshot: str = ""
    repository: tuple[str, ...] = ()
    bootstrap: tuple[str, ...] = ()
    bootstrap_with: str = ""
    settings: str = ""
    source: str

    def snapshot_of(self, release: str) -> str:
        """The address of the snapshot of a release that is a day, or nothing."""
        day = _DAY.fullmatch(release)
        return _fill(self.snapshot, day.groupdict()) if day else ""

    def lists_of(self, day: str, architecture: str) -> tuple[str, ...]:
        """The addresses of the package lists of a day's snapshot."""
        return filled(self.dated_lists, snapshot=self.snapshot_of(day), architecture=architecture)


_DAY = re.compile(r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)")


def filled(command: Sequence[str], packages: Iterable[str] = (), **values: str) -> tuple[str, ...]:
    """A package manager's command with its places filled in: `packages`, and `folder` or a date."""
    every = [word for part in command for word in (packages if part == "{packages}" else (part,))]
    return tuple(_fill(word, values) for word in every)


def _fill(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


class OtherPython(Frozen):
    """A Python that a base has beside its own: the command, and its names for system packages of it."""

    version: str
    interpreter: str
    packages: dict[str, tuple[str, ...]] = {}
    wheels: dict[str, str] = {}
    source: str


class BaseRelease(Frozen):
    """One release of a base.

    `image` names the OCI image that the root is pulled from, empty where it is made from packages; `digest`
    is that image's, empty until an online lock has seen it. `python` is the version of the Python that builds
    on it take, `interpreter` the command of that one where it is not `python3`; `pythons` are others that it
    has too, for what does not build with that one. `wheels` are requirements, by the catalog's name of a
    system package: checks install them, as the base has no such package for this Python.
    `over` is the release below one that is not whole, such as Debian's experimental: all comes from there but
    the source packages `takes`. A `snapshot` is a day of an archive's past, from the mirror that the
    settings of the machine name. `packages` are names of system packages that differ in this release.
    """

    name: str
    image: str = ""
    digest: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")] = ""
    python: str = ""
    interpreter: str = ""
    pythons: tuple[OtherPython, ...] = ()
    wheels: dict[str, str] = {}
    snapshot: Snapshot = ""
    over: str = ""
    takes: tuple[str, ...] = ()
    packages: dict[str, tuple[str, ...]] = {}
    provides: dict[str, Provided] = {}
    source: str
    confidence: str = ""


class Base(Frozen):
    """An operating system: its package manager, releases, and what it provides of the stack.

    `made` says whether a root is made from the archive's packages alone, or from an image and packages;
    `packages` are names of system packages that differ here from what they are for its package manager;
    `compiler_reads` are globs of files that compilers read without telling the compiler cache; `env` is what
    every build on it sees ("{path}" is where programs are looked for otherwise); `minimal` are the packages
    that a root starts from where its package manager makes it from nothing. `architecture` are the
    architectures that it is there for, with its own names for them.
    """

    name: str
    summary: str
    manager: str
    made: Literal["packages", "image"]
    release: tuple[BaseRelease, ...]
    architecture: dict[Architecture, str]
    common: tuple[str, ...] = ()
    compiler_reads: tuple[str, ...] = ()
    env: dict[str, str] = {}
    packages: dict[str, tuple[str, ...]] = {}
    minimal: tuple[str, ...] = ()
    provides: dict[str, Provided] = {}
    source: str

    @model_validator(mode="after")
    def _image_where_made_from_one(self) -> Self:
        odd = [release.name for release in self.release if bool(release.image) != (self.made == "image")]
        if odd:
            raise ValueError(f"made = {self.made!r} does not fit the image of {', '.join(odd)}")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Its releases as a user names them: `debian:sid`."""
        return tuple(f"{self.name}:{release.name}" for release in self.release)

    def provided(self, release: BaseRelease) -> dict[str, Provided]:
        """What that release brings along; what it says itself stands over what the base says."""
        return self.provides | release.provides


def with_python(base: Base, release: BaseRelease, version: str) -> tuple[Base, BaseRelease]:
    """A base as this release has it, and with another of its Pythons in the place of its own."""
    base = base.model_copy(update={"packages": base.packages | release.packages})
    for python in release.pythons:
        if python.version == version:
            return (
                base.model_copy(update={"packages": base.packages | python.packages}),
                release.model_copy(
                    update={"python": version, "interpreter": python.interpreter, "wheels": python.wheels}
                ),
            )
    return base, release
