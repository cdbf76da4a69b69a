"""Steps: self-contained commands with named inputs, and the plan that they form."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field

from rocbase.files.atomic import sha256_bytes
from rocbase.http.address import checked
from rocbase.model import Frozen, canonical_json
from rocwright.model.edits import Edit
from rocwright.model.step_environment import FIXED

# Raised when the meaning of a step's definition changes; every key changes with it.
KEY_SCHEMA = 2


# How the names of steps begin that run a recipe's `prepare` commands.
PREPARE = "prepare/"

# Hex digits.
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

# A name or version that no program takes for an option or a path.
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9+._~:@-]*$")]

# A day of an archive's past, as the archive's snapshots name it; "" is today.
Snapshot = Annotated[str, Field(pattern=r"^([0-9]{8}(T[0-9]{6}Z)?)?$")]

# The name of a file, and never a way to another folder: locks come from strangers too.
FileName = Annotated[str, Field(pattern=r"^[^./\\\x00-\x1f][^/\\\x00-\x1f]*$")]


# A full git commit id.
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]

# A folder of a repository, with no part that leads elsewhere.
GitFolder = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._+-]*(/[A-Za-z0-9_][A-Za-z0-9._+-]*)*$")]


class DebianOrigin(Frozen):
    """A binary package, in the archive that this machine's apt is set up for, as seen from `architecture`."""

    kind: Literal["debian"] = "debian"
    suite: Word
    package: Word
    version: Word
    architecture: Word


class DebianSourceOrigin(Frozen):
    """A file of a source package, likewise."""

    kind: Literal["debian-source"] = "debian-source"
    suite: Word
    package: Word
    version: Word
    architecture: Word


class IndexOrigin(Frozen):
    """A file of a project on the Python package index that pip is set up for, or on the one named."""

    kind: Literal["index"] = "index"
    project: Word
    version: str
    index: Annotated[str, Field(pattern=r"^(https?://.*)?$")] = ""


class GitOrigin(Frozen):
    """The tree of a commit, submodules included, packed the same way everywhere.

    `held` are submodules, by path, at another commit than the one that the repository links. `paths` are the
    only folders and files that are taken, without submodules; with `repository` the tree holds what git says
    of the commit.
    """

    kind: Literal["git"] = "git"
    url: Annotated[str, Field(pattern=r"^[^-]")]
    commit: Commit
    held: dict[str, Commit] = {}
    paths: tuple[GitFolder, ...] = ()
    repository: bool = False


class ArchiveOrigin(Frozen):
    """A file at an address of the web."""

    kind: Literal["archive"] = "archive"
    url: Annotated[str, Field(pattern=r"^https?://[^\s]+$"), AfterValidator(checked)]


class BuiltinOrigin(Frozen):
    """A tree that rocwright itself carries."""

    kind: Literal["builtin"] = "builtin"
    name: Word


class ImageOrigin(Frozen):
    """The root file system of an image, by the digest of its manifest, packed the same way everywhere.

    `reference` names the image in full; its tag, where it has one, is for people to read.
    """

    kind: Literal["image"] = "image"
    reference: Annotated[str, Field(pattern=r"^[A-Za-z0-9]")]
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class PackageOrigin(Frozen):
    """A package as the package manager of an image gets it.

    `image` is the sha256 of that image's packed root, `package` what the manager is asked for to get exactly
    this one.
    """

    kind: Literal["package"] = "package"
    base: Word
    release: Word
    manager: Word
    image: Sha256
    package: Annotated[str, Field(pattern=r"^[A-Za-z0-9][^\s]*$")]


Origin = Annotated[
    DebianOrigin
    | DebianSourceOrigin
    | IndexOrigin
    | GitOrigin
    | ArchiveOrigin
    | BuiltinOrigin
    | ImageOrigin
    | PackageOrigin,
    Field(discriminator="kind"),
]


class FilePin(Frozen):
    """One exact file: its name, hex sha256 and size in bytes, and where it can be had."""

    filename: FileName
    sha256: Sha256
    size: int = Field(ge=0)
    origin: Origin


class OutputSpec(Frozen):
    """An output: the one file in the output folder that `pattern` matches."""

    name: str
    pattern: str


class FetchAction(Frozen):
    """Get files from outside; each becomes an output named by its sha256.

    `pending` says in words what is to be fetched where no lock knows the files yet: it can be planned and
    exported, not run.
    """

    kind: Literal["fetch"] = "fetch"
    files: tuple[FilePin, ...] = ()
    pending: str = ""

    def material(self) -> Any:
        # a name decides how the next step reads a file; where a file comes from cannot change what it is
        files = sorted([pin.filename, pin.sha256] for pin in self.files)
        material: dict[str, Any] = {"kind": self.kind, "files": files}
        return material | ({"pending": self.pending} if self.pending else {})


class BaseAction(Frozen):
    """Make a root file system of exactly the packages among the inputs.

    Of family `debian`, the commands of `customize` run at last in the new root itself, without a network.
    Of family `image`, it is made in the root file system of an image, whose sha256 `image` is and which is
    among the inputs too: the command `install` installs the packages from a folder with the environment
    `env`, then what the globs `forget` match is removed.
    """

    kind: Literal["base"] = "base"
    family: Literal["debian", "image"] = "debian"
    suite: str
    architecture: str
    image: str = ""
    install: tuple[str, ...] = ()
    env: dict[str, str] = {}
    forget: tuple[str, ...] = ()
    customize: tuple[str, ...] = ()

    def material(self) -> Any:
        of_images = {"image", "install", "env", "forget"}
        left_out = {"customize"} if self.family == "image" or not self.customize else set()
        left_out |= of_images if self.family != "image" else set()
        return self.model_dump(mode="json", exclude=left_out)


class TreeAction(Frozen):
    """Unpack sources, keep `subdir`, apply series and edits in order; the output is the tree.

    Folders of a distribution's packaging, by name, are laid under `debian/` in it.
    `version` is the component's: an edit says in which versions upstream may have it already.
    """

    kind: Literal["tree"] = "tree"
    subdir: str = ""
    series: tuple[str, ...] = ()
    packaging: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    version: str = ""

    def material(self) -> Any:
        # whether an edit may find its work done decides if there is a tree, not which
        left_out = {"edits", "version"} | ({"packaging"} if not self.packaging else set())
        data = self.model_dump(mode="json", exclude=left_out)
        # a reworded reason is not another source
        return data | {"edits": [edit.material() for edit in self.edits]}


class RunAction(Frozen):
    """Run commands in a sandbox, in the source tree; the inputs are under $IN, outputs go to $OUT.

    `install` names inputs whose wheels are installed into an environment of the step before anything else;
    `python` is the interpreter that this environment is made of, where it is not the root's `python3`: there
    is one then in any case, and `python3` means it;
    `guard` names packages of which one working copy must be found before anything is compiled;
    `compiler_reads` are globs of files in the root whose change makes the compiler cache start anew;
    `resume` is the number of the first command that may be run again in a tree where it was cut short, from
    1 on, and 0 where none may: the step then always starts clean;
    `split` is the number, from 1 on, of the command whose ninja can be split over shards, and 0 for none.
    """

    kind: Literal["run"] = "run"
    commands: tuple[str, ...]
    env: dict[str, str] = {}
    outputs: tuple[OutputSpec, ...]
    install: tuple[str, ...] = ()
    python: str = ""
    guard: tuple[str, ...] = ()
    compiler_reads: tuple[str, ...] = ()
    resume: int = Field(0, ge=0)
    split: int = Field(0, ge=0)

    @property
    def own_python(self) -> bool:
        """Whether the step has a Python environment of its own."""
        return bool(self.install or self.python)

    def material(self) -> Any:
        # neither guards nor compiler caches change what is made, nor does where a step goes on
        left_out = {"guard", "compiler_reads", "resume", "split"}
        left_out |= {name for name in ("install", "python") if not getattr(self, name)}
        return self.model_dump(mode="json", exclude=left_out) | {"fixed": FIXED}


class ImageAction(Frozen):
    """Pack a root file system and archives on top of it as an OCI image layout.

    `reference` is the name and tag that an engine gives the image when it is loaded.
    """

    kind: Literal["image"] = "image"
    name: str
    reference: str
    prefix: str
    entrypoint: tuple[str, ...] = ()
    env: dict[str, str] = {}
    labels: dict[str, str] = {}
    architecture: str

    def material(self) -> Any:
        return self.model_dump(mode="json")


Action = Annotated[
    FetchAction | BaseAction | TreeAction | RunAction | ImageAction, Field(discriminator="kind")
]


class Input(Frozen):
    """An output of another step, seen under `name`. `output` is "*" for all outputs of that step."""

    name: str
    key: str
    output: str


class Resources(Frozen):
    """What a step needs of a machine, in bytes and seconds; never part of its key.

    `memory` is for one job; `seconds` is what it took on the two-core machine where it was measured.
    """

    cores: int = 1
    memory: int = 0
    disk: int = 0
    seconds: float = 0
    limit: float = 12 * 3600


class About(Frozen):
    """What a step is made of, for who reads of its failure, and the architecture that it is planned for.

    Never part of its key, which has the architecture by what differs with it.
    """

    version: str = ""
    base: str = ""
    targets: tuple[str, ...] = ()
    architecture: str = ""


class Step(Frozen):
    """One node of a plan: self-contained, so that it can run anywhere that has the store.

    `domain` is the trust domain of a step that runs commands: with whose steps it shares a compiler cache
    (see `plan.domain`). It is never part of the key; a step without one shares with nobody.
    """

    name: str
    component: str
    action: Action
    inputs: tuple[Input, ...] = ()
    resources: Resources = Resources()
    about: About = About()
    domain: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""

    @property
    def kind(self) -> str:
        return self.action.kind

    @property
    def runs_on(self) -> str:
        """The architecture of the machines that can run it; "" where any can.

        Fetching, changing trees and packing images run none of the programs that they handle.
        """
        return self.about.architecture if isinstance(self.action, BaseAction | RunAction) else ""

    @cached_property
    def key(self) -> str:
        """The sha256 over everything that can change the output: the action and the keys of its inputs."""
        return self._digest([[item.name, item.key, item.output] for item in self.inputs])

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, whose key is its own."""
        copied = super().model_copy(update=update, deep=deep)
        if update and not update.keys().isdisjoint(("action", "inputs")):
            copied.__dict__.pop("key", None)
        return copied

    def content_key(self, digests: dict[str, list[str]]) -> str:
        """The same over the digests of the inputs, by input name: equal inputs, equal key."""
        return self._digest([[item.name, digests[item.name]] for item in self.inputs])

    def _digest(self, inputs: Any) -> str:
        return sha256_bytes(
            canonical_json({"schema": KEY_SCHEMA, "action": self.action.material(), "inputs": inputs})
        )


class Plan(Frozen):
    """Steps in an order in which each comes after what it needs; `artifacts` are the steps asked for."""

    steps: tuple[Step, ...]
    artifacts: tuple[str, ...]
