"""The facts of the field as models: what the TOML files of a catalog may say."""

from __future__ import annotations

from collections.abc import Container, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rocbase.errors import InputError
from rocbase.model import Frozen
from rocwright.catalog.address import Download
from rocwright.catalog.place import Place
from rocwright.catalog.server import Server
from rocwright.model.architecture import Architecture
from rocwright.model.edits import Edit
from rocwright.model.sizes import Size
from rocwright.model.steps import OutputSpec
from rocwright.model.versions import PythonVersion, version_in


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

    version: PythonVersion
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
        return (*self.places, *(place for entry in self.on for place in entry.places))

    def for_base(self, base: str) -> Release:
        """The release as it is built on `base` (`debian:sid`): what the first entry of `on` for it says."""
        for entry in self.on:
            if any(fnmatchcase(base, glob) for glob in entry.bases):
                return self.model_copy(
                    update={
                        "places": entry.places or self.places,
                        "needs": self.needs | entry.needs,
                        "env": self.env | entry.env,
                        "system": self.system + entry.system,
                        "python": (*self.python, *entry.python),
                        "prepare": (*self.prepare, *entry.prepare),
                        "on": (),
                    }
                )
        return self

    def known_good(self, targets: Sequence[str]) -> int:
        """2 where evidence names each of these targets, 1 where there is some for any, 0 for none."""
        if isinstance(self.evidence, str):
            return bool(self.evidence)
        if targets and all(target in self.evidence for target in targets):
            return 2
        return int(ANY in self.evidence)


# Stands for every target that evidence does not name.
ANY = "any"


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

    `machine-code` reads the GPU code in them, and judges whether it runs on each GPU; `resources` compares
    the registers and memory that each kernel takes with what its GPU has; `wheel` compares what wheels
    say with what is in them; `check-gpu` judges the wheels that were published for the component, whether
    each GPU has the code that they take there; `script` runs a program of the catalog in a sandbox, which
    prints a line for each thing it found. With `outputs` all that the component has made lies in /outputs.
    """

    name: str
    kind: Literal["machine-code", "resources", "wheel", "check-gpu", "script"]
    script: str = ""
    arguments: tuple[str, ...] = ()
    env: dict[str, str] = {}
    model: bool = False
    wheels: bool = False
    outputs: bool = False
    seconds: float = 900
    why: str = ""


class Windows(Frozen):
    """How a recipe is built on Windows, as a script that is exported: never by rocwright itself.

    `env` stands over the recipe's own, of which `without` is not set. `prepare` and `run` are commands of
    PowerShell in the tree, in which $python is the environment's and $out the folder for wheels; `dlls` maps
    libraries of the machine to the folder of the tree that they are copied into before `run`.
    """

    env: Env = {}
    without: tuple[str, ...] = ()
    dlls: dict[str, str] = {}
    prepare: tuple[str, ...] = ()
    run: Annotated[tuple[str, ...], Field(min_length=1)]
    source: str
    confidence: str = ""


class EmulatedCheck(Check):
    """A script that runs on an emulated GPU, where one is asked for, and in no other verification.

    `least` is how many things it must have found: an emulator that ends early proves nothing.
    """

    kind: Literal["script"] = "script"
    least: int = Field(1, ge=1)


Scheme = Literal["release", "build"]


class Image(Frozen):
    """An OCI image of the run-time root file system with the archive unpacked under `prefix`."""

    prefix: str
    entrypoint: tuple[str, ...] = ()
    env: dict[str, str] = {}


class Serve(Frozen):
    """How it is run: the command, devices, ports, folders kept outside (container path -> what for), and the
    environment with its reasons.

    `entrypoint` takes the place of the image's own, which is kept without it; `command` are its arguments.
    """

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    devices: tuple[str, ...] = ("/dev/kfd", "/dev/dri")
    groups: tuple[str, ...] = ("video", "render")
    ports: tuple[int, ...] = ()
    folders: dict[str, str] = {}
    shared_memory: Size = 0
    env: Env = {}


class Likeness(Frozen):
    """Another recipe, and what a recipe takes of it: of a table its own names stand, a list it replaces."""

    component: str
    takes: Annotated[tuple[str, ...], Field(min_length=1)]


class Component(Frozen):
    """One thing built or fetched: a recipe that a packager reads once and can change.

    `wheel` and `archive` are built; `image` is pulled by digest and run as it is; `file` is handed on as it
    was published, at an address; `wheels` were built and published by somebody else, and are taken as they
    are; `application` is a source tree into whose environment wheels are installed; `tool` is a Python
    package that builds need.
    `prepare` are commands run on the edited tree before edits of the phase "prepared" (hipify), `download`
    files that the commands find in $IN/downloads. `notes` is the address of a release's notes ("{version}" is
    filled in). `scheme` says how versions follow each other: in series of releases, or as numbers of builds.
    `uses` maps components to ranges: an archive that is built
    in the same lock, because somebody asked for it, is an input then; its own `setup` are the shell commands
    that make it be found, before those of who takes it in, and `bundle` those that put it into the unpacked
    artifact of that one, after them; those of a wheel come before what compiles with
    ROCm's libraries on it. `architectures` are those that it is there for, all where none is named. `resume`
    is the number of the first of the `run` commands that gives the same when it is run again in a tree where
    it was cut short, as all behind it do; 0 where none does. `split` is the number of the `run` command whose
    ninja compiles most of it, which shards can do on several machines; 0 where none can. `python_run` are
    the Python packages that a wheel requires where it is imported: checks install them beside it. `emulated`
    are checks that run on an emulated GPU, where one is asked for; `windows` is how it is built on Windows,
    by a script that is exported; `server` is how it is run as a server on this machine. `opens` are
    the targets that the runtime of a ROCm refuses, and that are served if this is built. `also` are names
    that people look for it under, in lower case.
    """

    name: str
    also: tuple[str, ...] = ()
    summary: str
    homepage: str = ""
    notes: str = ""
    scheme: Scheme = "release"
    license: str
    kind: Literal["wheel", "archive", "image", "file", "wheels", "application", "tool"]
    release: tuple[Release, ...]
    system: SystemNeeds = SystemNeeds()
    python: tuple[str, ...] = ()
    python_run: tuple[str, ...] = ()
    resources: Resources = Resources()
    env: Env = {}
    guard: tuple[str, ...] = ()
    architectures: tuple[Architecture, ...] = ()
    opens: tuple[str, ...] = ()
    uses: dict[str, str] = {}
    setup: tuple[str, ...] = ()
    bundle: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    resume: int = Field(0, ge=0)
    split: int = Field(0, ge=0)
    output: tuple[OutputSpec, ...] = ()
    serve: Serve | None = None
    server: Server | None = None
    edit: tuple[Edit, ...] = ()
    download: tuple[Download, ...] = ()
    check: tuple[Check, ...] = ()
    emulated: tuple[EmulatedCheck, ...] = ()
    image: Image | None = None
    windows: Windows | None = None

    @model_validator(mode="after")
    def _numbers_are_of_commands(self) -> Self:
        for name, number in (("resume", self.resume), ("split", self.split)):
            if number > len(self.run):
                raise ValueError(f"{name} = {number}, and there are {len(self.run)} commands in `run`")
        return self

    def released(self, version: str) -> Release:
        """The release of that version. Raises InputError where the recipe has none."""
        releases = {release.version: release for release in self.release}
        if version not in releases:
            raise InputError(
                f"{self.name} {version} is not known",
                cause=f"the catalog has {self.name} {', '.join(releases)}; the lock was made with "
                "another catalog",
                next_step="rocwright lock",
            )
        return releases[version]

    def takes(self, version: str, components: Container[str]) -> dict[str, str]:
        """What a version builds on, by range: what it needs, and uses of the `components` beside it."""
        release = self.released(version)
        used = {name: required for name, required in (self.uses | release.uses).items() if name in components}
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
        return tuple(download for download in self.download if version_in(version, download.versions))

    @property
    def targets_code(self) -> bool:
        """Whether what is built holds machine code for the GPU asked for."""
        values = (setting if isinstance(setting, str) else setting.value for setting in self.env.values())
        return any("{targets}" in value for value in values)


class StackRow(Frozen):
    """One choice of a stack that comes with a lock: GPU, base, provider of ROCm and versions.

    `extra` are optional components of the stack that it has, `accept_missing` libraries of ROCm that it goes
    without; `wish` is the document that asked for it,
    `holds` what it must hold.
    """

    gpu: str
    base: str
    provider: str = ""
    versions: dict[str, str] = {}
    extra: tuple[str, ...] = ()
    accept_missing: tuple[str, ...] = ()
    wish: str
    holds: str


class Stack(Frozen):
    """A named choice of components that serves a purpose.

    `optional` are components that are added only when asked for; `warning` is said before anything is done,
    `prefer` names the stack that is better where it can be had. One for `any_gpu` needs no ROCm, and no code
    for a target: it is named to who has a card on which nothing else was seen to run.
    `also` are names that people look for it under, in lower case.
    What the stack `on` has of its components is built as that stack alone builds it, and taken from there.
    `origins` are the stacks that its name stands for, by where each is from, in the order of choice.
    """

    name: str
    also: tuple[str, ...] = ()
    summary: str
    components: tuple[str, ...]
    optional: tuple[str, ...] = ()
    on: str = ""
    bases: tuple[str, ...]
    targets: tuple[str, ...] = ()
    row: tuple[StackRow, ...] = ()
    warning: str = ""
    prefer: str = ""
    origins: dict[str, tuple[str, ...]] = {}
    any_gpu: bool = False
    next: tuple[str, ...] = ()
    source: str


class SystemPackages(Frozen):
    """The catalog's name of a system package -> its names for each package manager."""

    packages: dict[str, dict[str, tuple[str, ...]]] = Field(default_factory=dict)
