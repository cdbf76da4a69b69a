"""What a user asks for, and the lock that answers it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
)
from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from rocbase.files.atomic import sha256_bytes
from rocbase.model import Frozen, canonical_json
from rocwheel.wheels.names import read_wheel_name
from rocwright.catalog.place import PlaceKind
from rocwright.catalog.remedy import Name, RemedyAction
from rocwright.model.architecture import Architecture
from rocwright.model.steps import FilePin, IndexOrigin, Snapshot, Word
from rocwright.model.versions import PythonVersion, check_version

# Of a name, in characters: it is that of a folder too.
LONGEST = 120


def row_name(stack: str, gpu: Iterable[str], base: str, variant: str) -> str:
    """A name that no other row has, and that a folder can have.

    It is made of the row's own words; where these cannot all stand in it as they are, of a few digits of a
    hash over them too.
    """
    words = [stack, *gpu, base.replace(":", "-", 1), *variant.split(" ")]
    name = "_".join(re.sub(r"[^A-Za-z0-9.+=@!-]", "-", word) for word in words if word)
    if len(name) <= LONGEST and all(re.fullmatch(r"[A-Za-z0-9.+=@!-]*", word) for word in words):
        return name
    return f"{name[:LONGEST]}_{sha256_bytes(chr(0).join(words).encode())[:8]}"


# Raised when a lock's form changes: `rocwright lock` replaces a lock of another form.
LOCK_SCHEMA = 2

CREATED = "%Y-%m-%dT%H:%M:%SZ"


def _check_time(value: str) -> str:
    datetime.strptime(value, CREATED).replace(tzinfo=UTC)
    return value


def _check_python_file(pin: FilePin) -> FilePin:
    if isinstance(pin.origin, IndexOrigin):
        parse = read_wheel_name if pin.filename.endswith(".whl") else parse_sdist_filename
        try:
            parse(pin.filename)
            check_version(pin.origin.version)
        except (InvalidWheelFilename, InvalidSdistFilename) as error:
            raise ValueError(str(error)) from error
    return pin


# A file of a lock. Whoever writes a lock may be a stranger: what later code parses is parsed here first.
LockedFile = Annotated[FilePin, AfterValidator(_check_python_file)]

Role = Literal["build", "run", "check"]


class Request(Frozen):
    """`rocwright.toml`: this stack, for these GPUs, on this base.

    `provider` says where ROCm comes from, `extra` adds optional components of the stack, `versions` pins
    components: a version, or "@" and a commit. `accept_missing` are libraries of ROCm that may be left
    without code for the GPUs; with `allow_untested` the versions pinned may stand on a ROCm that no source
    saw them on. A `snapshot` is the day of the archive that packages come from; in a project file it stands
    behind the base, as in debian:sid@20261101. A project file or command line without `architecture` means
    this machine's.
    """

    stack: str
    gpu: tuple[str, ...] = Field(min_length=1)
    base: str
    provider: str = ""
    extra: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    accept_missing: tuple[str, ...] = ()
    allow_untested: bool = False
    architecture: Architecture = Architecture.X86_64
    snapshot: Snapshot = ""

    @model_validator(mode="before")
    @classmethod
    def _split_snapshot(cls, fields: Any) -> Any:
        """Read `debian:sid@20261101` as the base debian:sid of that day."""
        if not isinstance(fields, dict) or "@" not in str(fields.get("base", "")):
            return fields
        base, _, snapshot = fields["base"].partition("@")
        return {**fields, "base": base, "snapshot": snapshot}

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # sums of locks that are out there are of requests without them
        fields: dict[str, Any] = handler(self)
        late = ("allow_untested", "snapshot")
        return {name: value for name, value in fields.items() if name not in late or value}

    @property
    def other_architecture(self) -> str:
        """The architecture where it is not x86_64, else ""."""
        return "" if self.architecture is Architecture.X86_64 else self.architecture

    @property
    def digest(self) -> str:
        """The sha256 over all that is asked for: the name of its lock where locks are shared."""
        return sha256_bytes(canonical_json(self.model_dump(mode="json")))

    @property
    def variant(self) -> str:
        """In words what is asked for beside stack, GPUs and base; "" where that is nothing.

        A commit is told by its first twelve digits.
        """
        pins = sorted(
            f"{name}{pin[:13]}" if pin.startswith("@") else f"{name}={pin}"
            for name, pin in self.versions.items()
        )
        extra = sorted({f"+{name}" for name in self.extra})
        missing = sorted({f"without-{name}" for name in self.accept_missing})
        untested = "untested" if self.allow_untested else ""
        words = (self.provider, *extra, *pins, *missing, untested, self.other_architecture, self.snapshot)
        return " ".join(word for word in words if word)

    @property
    def words(self) -> list[str]:
        """How it is said on the command line, behind a verb."""
        base = f"{self.base}@{self.snapshot}" if self.snapshot else self.base
        words = [self.stack, "--base", base, *(word for gpu in self.gpu for word in ("--gpu", gpu))]
        words += ["--arch", self.architecture] if self.other_architecture else []
        words += ["--provider", self.provider] if self.provider else []
        words += [word for name in self.extra for word in ("--with", name)]
        words += [word for name in self.accept_missing for word in ("--accept-missing", name)]
        words += ["--allow-untested"] if self.allow_untested else []
        for name, pin in self.versions.items():
            words += ["--set", f"{name}{pin}" if pin.startswith("@") else f"{name}={pin}"]
        return words

    @property
    def name(self) -> str:
        """What it is called as a row."""
        return row_name(self.stack, self.gpu, self.base, self.variant)


class LockedRoot(Frozen):
    """A root file system: the exact packages of `suite`. `role` is build, run or check.

    `wanted` are the packages that recipes ask for; the rest of `packages` is what these need, and, where the
    root is made from an image, the root of that image, whose own environment `env` is; `lists` are then the
    addresses of the package lists that they were chosen from. Where `pending` says something, the packages
    (and the image, where it starts from one) are not known exactly yet.
    """

    role: Role
    base: str
    manager: str
    suite: Word
    architecture: Word
    wanted: tuple[str, ...] = ()
    image: str = ""
    env: dict[str, str] = {}
    lists: tuple[str, ...] = ()
    packages: tuple[LockedFile, ...] = ()
    pending: str = ""


class LockedComponent(Frozen):
    """A component's exact source. `place` says which place was taken, `passed_over` why not another.

    `kind` is the kind of that place, `commit` the git commit or image digest of it, where it has one.
    `downloads` are the files that its build wants beside its source, `env` the variables that an image sets
    for what runs in it. Where `pending` says something, the files' hashes are not known yet.
    """

    name: str
    version: PythonVersion
    kind: PlaceKind
    place: str
    passed_over: tuple[str, ...] = ()
    commit: str = ""
    subdir: str = ""
    series: tuple[str, ...] = ()
    packaging: tuple[str, ...] = ()
    files: tuple[LockedFile, ...] = ()
    downloads: tuple[LockedFile, ...] = ()
    env: dict[str, str] = {}
    pending: str = ""

    @model_validator(mode="after")
    def _check_files(self) -> Self:
        if not (self.files or self.pending):
            raise ValueError(f"{self.name} has no files, and does not say which are to be found")
        return self


class LockedSdist(Frozen):
    """A source distribution among Python packages, which a step of its own makes a wheel of.

    `wanted` are its build requirements as it says them, `requires` the wheels that answer them.
    """

    name: str
    version: PythonVersion
    wanted: tuple[str, ...]
    files: tuple[LockedFile, ...] = Field(min_length=1, max_length=1)
    requires: tuple[LockedFile, ...]


class LockedProvider(Frozen):
    """Where ROCm comes from: a provider of the catalog and the version of ROCm, as it was chosen."""

    name: str
    version: PythonVersion
    wanted: tuple[str, ...] = ()
    files: tuple[LockedFile, ...] = ()
    sdists: tuple[LockedSdist, ...] = ()
    pending: str = ""


class LockedPython(Frozen):
    """The Python packages that builds need, by hash; `wanted` is what the recipes ask for.

    The version of Python is "" if the base provides none.
    """

    version: PythonVersion | Literal[""]
    wanted: tuple[str, ...] = ()
    files: tuple[LockedFile, ...] = ()
    sdists: tuple[LockedSdist, ...] = ()
    pending: str = ""


class Remedy(Frozen):
    """A change that mends a known `issue` of a `component`: an action of the catalog, and its trail.

    `failed` is what the failure looked like, in the `step` and at the `version` where it was met; `why` and
    `source` are the issue's words; `since` is when it was taken (UTC). It is on `trial` until a build has
    shown whether it `helped`, or was `useless` and so is not tried again; `told` says how that was seen.
    `before` and `after` are the keys of the step without it and with it. `memory` is what one job is taken
    to want, in bytes, where the action bounds the jobs; `undo` names the lock as it was before, where the
    action made it anew.
    """

    issue: Name
    component: Name
    version: Word
    action: RemedyAction
    why: str
    source: tuple[str, ...] = ()
    step: str
    failed: str = ""
    since: str
    outcome: Literal["trial", "helped", "useless"]
    told: str = ""
    before: str = ""
    after: str = ""
    memory: int = Field(default=0, ge=0)
    undo: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""

    @property
    def in_force(self) -> bool:
        """Whether builds have it."""
        return self.outcome != "useless"


class Lock(Frozen):
    """`rocwright.lock`: one exact version of everything.

    `python_run` are the wheels that checks install beside what was built; no build sees them. What `on` has
    of the components is built by that lock, with its packages alone, and taken from there.
    """

    schema_version: int = Field(default=LOCK_SCHEMA, alias="schema")
    rocwright: str
    created: Annotated[str, AfterValidator(_check_time)]
    request: Request
    provided: dict[str, PythonVersion] = {}
    rocm: LockedProvider | None = None
    python: LockedPython | None = None
    python_run: LockedPython | None = None
    roots: tuple[LockedRoot, ...]
    components: tuple[LockedComponent, ...]
    remedies: tuple[Remedy, ...] = ()
    on: Lock | None = None

    @property
    def in_force(self) -> tuple[Remedy, ...]:
        """The remedies that builds have, in the order in which they were taken."""
        return tuple(remedy for remedy in self.remedies if remedy.in_force)

    @property
    def pending(self) -> tuple[str, ...]:
        """What nobody could verify when the lock was made; an online `rocwright lock` fills it in."""
        parts = (*self.components, *self.roots, self.rocm, self.python, self.python_run)
        open_ = [part.pending for part in parts if part is not None and part.pending]
        return tuple(dict.fromkeys((*open_, *(self.on.pending if self.on is not None else ()))))

    @property
    def packages(self) -> tuple[LockedPython, ...]:
        """The Python packages of builds and checks, and those of the lock that it stands on."""
        own = tuple(python for python in (self.python, self.python_run) if python is not None)
        return (*own, *(self.on.packages if self.on is not None else ()))

    @property
    def versions(self) -> dict[str, str]:
        """The version of ROCm, of what the base brings, and of each component."""
        rocm = {"rocm": self.rocm.version} if self.rocm else {}
        return rocm | self.provided | {component.name: component.version for component in self.components}

    @property
    def digest(self) -> str:
        """The sha256 over what it says, whenever it was made: of its JSON without `created`."""
        text = self.model_dump_json(by_alias=True, exclude={"created": True, "on": {"created"}})
        return sha256_bytes(text.encode())

    def root(self, role: str) -> LockedRoot | None:
        """The root file system of that role, or None where the stack needs none."""
        return next((root for root in self.roots if root.role == role), None)
