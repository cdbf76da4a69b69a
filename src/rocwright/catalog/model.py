"""The facts of the field as models: what the TOML files of a catalog may say."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self

from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, Field, model_validator

from rocwheel.errors import InputError
from rocwheel.model import Frozen
from rocwright.catalog.address import Download
from rocwright.catalog.place import Place
from rocwright.catalog.sizes import Size
from rocwright.model.architecture import Architecture
from rocwright.model.edits import Edit
from rocwright.model.steps import OutputSpec
from rocwright.model.versions import version_in


def _check_version(value: str) -> str:
    try:
        Version(value)
    except InvalidVersion as error:
        raise ValueError(f"{value!r} is not a version such as 0.21.0 (PEP 440)") from error
    return value


class Value(Frozen):
    """A variable with its reason. `when` limits it to locks that have that component ("rocm"), or, with a
    "!" before it, to those that have it not; in the others it is `otherwise`, or not set."""

    value: str
    when: str = ""
    otherwise: str | None = None
    why: str = ""
    source: str = ""


Env = dict[str, str | Value]


class SystemNeeds(Frozen):
    """System packages by the catalog's names: to build, to run, and to check.

    `rocm` are libraries of ROCm, installed where the base's own packages provide it.
    """

    build: tuple[str, ...] = ()
    rocm: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    check: tuple[str, ...] = ()

    def __add__(self, other: SystemNeeds) -> SystemNeeds:
        """Those of both."""
        return SystemNeeds(
            build=(*self.build, *other.build),
            rocm=(*self.rocm, *other.rocm),
            run=(*self.run, *other.run),
            check=(*self.check, *other.check),
        )


class OnBases(Frozen):
    """What is otherwise about a release on some bases (globs of `debian:sid`), and why.

    `places` are instead of the release's own, `needs` and `env` stand over its own, the rest is added:
    `system` and `python` to what the recipe names, `prepare` before the recipe's commands of that name.
    """

    bases: Annotated[tuple[str, ...], Field(min_length=1)]
    places: tuple[Place, ...] = ()
    needs: dict[str, str] = {}
    env: Env = {}
    system: SystemNeeds = SystemNeeds()
    python: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    why: str


class Release(Frozen):
    """One version of a component: the places that have it, in order of trust, and what it needs of others.

    `needs` maps a component (python, and tools of the build such as cmake, among them) to a version
    specifier; `uses` adds to what the recipe uses, for this release alone; `targets` are the only GPUs served
    (empty: any), `without` maps a GPU not served to the reason;
    `env` adds to the recipe's environment for this release alone; `evidence` tells where this version is
    known to be good, by target where it is known for some alone ("any" for the others); `source` tells where
    these facts are from. `on` is what is otherwise on some bases.
    """

    version: Annotated[str, AfterValidator(_check_version)]
    places: tuple[Place, ...] = ()
    needs: dict[str, str] = {}
    uses: dict[str, str] = {}
    targets: tuple[str, ...] = ()
    without: dict[str, str] = {}
    env: Env = {}
    evidence: str | dict[str, str] = ""
    source: str
    system: SystemNeeds = SystemNeeds()
    python: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    on: tuple[OnBases, ...] = ()

    @property
    def every_place(self) -> tuple[Place, ...]:
        """All places that have it, those for some bases too."""
        return (*self.places, *(place for one in self.on for place in one.places))

    def for_base(self, base: str) -> Release:
        """The release as it is built on `base` (`debian:sid`): what the first entry of `on` for it says."""
        for one in self.on:
            if any(fnmatchcase(base, glob) for glob in one.bases):
                return self.model_copy(
                    update={
                        "places": one.places or self.places,
                        "needs": self.needs | one.needs,
                        "env": self.env | one.env,
                        "system": self.system + one.system,
                        "python": (*self.python, *one.python),
                        "prepare": (*self.prepare, *one.prepare),
                        "on": (),
                    }
                )
        return self

    def known_good(self, targets: Sequence[str]) -> int:
        """2 where evidence names each of these targets, 1 where there is some for any, 0 for none."""
        if isinstance(self.evidence, str):
            return bool(self.evidence)
        if targets and all(one in self.evidence for one in targets):
            return 2
        return int(ANY in self.evidence)


ANY = "any"
"""Stands for every target that evidence does not name."""


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

    `machine-code` reads the GPU code in them, and judges whether it runs on each GPU; `wheel` compares what
    wheels say with what is in them; `script` runs a program of the catalog in a sandbox, which prints a line
    for each thing it found.
    """

    name: str
    kind: Literal["machine-code", "wheel", "script"]
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


class Serve(Frozen):
    """How it is run: the command, devices, ports, folders kept outside (container path -> what for), and the
    environment with its reasons."""

    command: tuple[str, ...] = ()
    devices: tuple[str, ...] = ("/dev/kfd", "/dev/dri")
    groups: tuple[str, ...] = ("video", "render")
    ports: tuple[int, ...] = ()
    folders: dict[str, str] = {}
    shared_memory: Size = 0
    env: Env = {}


class Component(Frozen):
    """One thing built or fetched: a recipe that a packager reads once and can change.

    `wheel` and `archive` are built; `image` is pulled by digest and run as it is; `file` is handed on as it
    was published, at an address; `application` is a source
    tree into whose environment wheels are installed; `tool` is a Python package that builds need.
    `prepare` are commands run on the edited tree before edits of the phase "prepared" (hipify), `download`
    files that the commands find in $IN/downloads. `notes` is the address of a release's notes ("{version}" is
    filled in). `uses` maps components to ranges: an archive that is built
    in the same lock, because somebody asked for it, is an input then; its own `setup` are the shell commands
    that make it be found, before those of who takes it in. `architectures` are those that it is there for,
    all where none is named. `resume` is the number of the first of the `run` commands that gives the same
    when it is run again in a tree where it was cut short, as all behind it do; 0 where none does.
    """

    name: str
    summary: str
    homepage: str = ""
    notes: str = ""
    license: str
    kind: Literal["wheel", "archive", "image", "file", "application", "tool"]
    release: tuple[Release, ...]
    system: SystemNeeds = SystemNeeds()
    python: tuple[str, ...] = ()
    resources: Resources = Resources()
    env: Env = {}
    guard: tuple[str, ...] = ()
    architectures: tuple[Architecture, ...] = ()
    uses: dict[str, str] = {}
    setup: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    resume: int = Field(0, ge=0)
    output: tuple[OutputSpec, ...] = ()
    serve: Serve | None = None
    edit: tuple[Edit, ...] = ()
    download: tuple[Download, ...] = ()
    check: tuple[Check, ...] = ()
    image: Image | None = None

    @model_validator(mode="after")
    def _resumes_at_a_command(self) -> Self:
        if self.resume > len(self.run):
            raise ValueError(f"resume = {self.resume}, and there are {len(self.run)} commands in `run`")
        return self

    def released(self, version: str) -> Release:
        """The release of that version. Raises InputError where the recipe has none."""
        found = {release.version: release for release in self.release}
        if version not in found:
            raise InputError(
                f"{self.name} {version} is not known",
                cause=f"the catalog has {self.name} {', '.join(found)}; the lock was made with "
                "another catalog",
                next_step="rocwright lock",
            )
        return found[version]

    def takes(self, version: str, beside: Container[str]) -> dict[str, str]:
        """What a version builds on, by range: what it needs, and uses of the components `beside` it."""
        release = self.released(version)
        used = {name: wanted for name, wanted in (self.uses | release.uses).items() if name in beside}
        return used | release.needs

    def system_of(self, version: str) -> SystemNeeds:
        """The system packages of a version."""
        return self.system + self.released(version).system

    def python_of(self, version: str) -> tuple[str, ...]:
        """The Python packages that building a version takes, beside its tools."""
        return (*self.python, *self.released(version).python)

    def prepare_of(self, version: str) -> tuple[str, ...]:
        """The commands that prepare the tree of a version."""
        return (*self.released(version).prepare, *self.prepare)

    def downloads(self, version: str) -> tuple[Download, ...]:
        """The files that building this version wants beside its source."""
        return tuple(one for one in self.download if version_in(version, one.versions))

    @property
    def targets_code(self) -> bool:
        """Whether what is built holds machine code for the GPU asked for."""
        values = (one if isinstance(one, str) else one.value for one in self.env.values())
        return any("{targets}" in value for value in values)


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


ListForm = Literal["deb", "rpm", "alpm"]
"""How an archive writes its lists of packages."""


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
    installation leaves in the root that is no part of it. `bootstrap` makes a root in the empty folder
    `{root}` on a machine that has the program `bootstrap_with`, with `settings` as the file `{settings}` and
    from the `{release}` of a base.
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
    every = [one for part in command for one in (packages if part == "{packages}" else (part,))]
    return tuple(_fill(one, values) for one in every)


def _fill(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


class OtherPython(Frozen):
    """A Python that a base has beside its own: the command, and its names for system packages of it."""

    version: str
    interpreter: str
    packages: dict[str, tuple[str, ...]] = {}
    source: str


class BaseRelease(Frozen):
    """One release of a base.

    `image` names the OCI image that the root is pulled from, empty where it is made from packages; `digest`
    is that image's, empty until an online lock has seen it. `python` is the version of the Python that builds
    on it take, `interpreter` the command of that one where it is not `python3`; `pythons` are others that it
    has too, for what does not build with that one.
    """

    name: str
    image: str = ""
    digest: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")] = ""
    python: str = ""
    interpreter: str = ""
    pythons: tuple[OtherPython, ...] = ()
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
        odd = [one.name for one in self.release if bool(one.image) != (self.made == "image")]
        if odd:
            raise ValueError(f"made = {self.made!r} does not fit the image of {', '.join(odd)}")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Its releases as a user names them: `debian:sid`."""
        return tuple(f"{self.name}:{one.name}" for one in self.release)

    def provided(self, release: BaseRelease) -> dict[str, Provided]:
        """What that release brings along; what it says itself stands over what the base says."""
        return self.provides | release.provides


def with_python(base: Base, release: BaseRelease, version: str) -> tuple[Base, BaseRelease]:
    """A base and release with another of its Pythons in the place of its own; as they are for its own."""
    for one in release.pythons:
        if one.version == version:
            return (
                base.model_copy(update={"packages": base.packages | one.packages}),
                release.model_copy(update={"python": version, "interpreter": one.interpreter}),
            )
    return base, release


class Row(Frozen):
    """One choice of a stack that comes with a lock: GPU, base, provider of ROCm and versions.

    `accept_missing` are libraries of ROCm that it goes without; `wish` is the document that asked for it,
    `holds` what it must hold.
    """

    gpu: str
    base: str
    provider: str = ""
    versions: dict[str, str] = {}
    accept_missing: tuple[str, ...] = ()
    wish: str
    holds: str


class Stack(Frozen):
    """A named choice of components that serves a purpose.

    `optional` are components that are added only when asked for; `warning` is said before anything is done,
    `prefer` names the stack that is better where it can be had.
    """

    name: str
    summary: str
    components: tuple[str, ...]
    optional: tuple[str, ...] = ()
    bases: tuple[str, ...]
    targets: tuple[str, ...] = ()
    row: tuple[Row, ...] = ()
    warning: str = ""
    prefer: str = ""
    next: tuple[str, ...] = ()
    source: str


class SystemPackages(Frozen):
    """The catalog's name of a system package -> its names for each package manager."""

    packages: dict[str, dict[str, tuple[str, ...]]] = Field(default_factory=dict)
