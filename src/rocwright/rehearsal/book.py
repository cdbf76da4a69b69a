"""What is tried of each component where its row cannot be built, and on which stand-ins: rehearsals.toml."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rocbase.errors import InputError
from rocbase.model import Frozen
from rocbase.toml.read import parse, read_table
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import Catalog
from rocwright.catalog.place import FolderName, Place
from rocwright.model.versions import version_in
from rocwright.plan.resolve.model import Request

FILE = "rehearsals.toml"

# What the catalog can say how to try: edits applied, the build configured, host files compiled, device files
# compiled for the GPU, edited Python imported.
TrialName = Literal["edits", "configure", "compile", "device", "import"]

# What can be tried: that, and wheels that others published fetched and read.
PartName = TrialName | Literal["wheels"]


class StandIn(Frozen):
    """A base that can be had, in the place of others.

    Its root has the `system` packages, by the catalog's names; or it is `like` a request of a stack, whose
    lock says the root, and whose plan the Python environment and trees of its components. That root's files
    of ROCm move from the beginnings of paths in `moves` to their values ("" leaves a file where it is), then
    the commands of `customize` run. `rocm` is where it has ROCm, "" where it has none; variables of `env`
    replace the recipe's.
    """

    name: FolderName
    base: str
    system: tuple[str, ...] = ()
    like: Request | None = None
    moves: dict[str, str] = {}
    customize: tuple[str, ...] = ()
    rocm: str = ""
    env: dict[str, str] = {}
    source: str

    @property
    def customized(self) -> tuple[str, ...]:
        """The commands that change the root."""
        if not self.moves:
            return self.customize
        words = shlex.join(f"{beginning}={target}" for beginning, target in self.moves.items())
        script = (DATA / "guards/move_rocm.py").read_text()
        return (f"python3 - {words} <<'END'\n{script}END", *self.customize)

    @model_validator(mode="after")
    def _has_a_root(self) -> Self:
        if bool(self.system) == (self.like is not None):
            raise ValueError("a stand-in needs either `system` packages, or a request that it is `like`")
        if self.like is not None and self.like.base != self.base:
            raise ValueError(f"it is like a request on {self.like.base}, and not on {self.base}")
        if self.customized and self.like is None:
            raise ValueError("`moves` and `customize` change the root of the request that it is `like`")
        return self


class RocmPlace(Frozen):
    """Where bases (globs of `debian:sid`) have ROCm."""

    bases: Annotated[tuple[str, ...], Field(min_length=1)]
    rocm: str
    source: str


class Nearest(Frozen):
    """A release that stands in for versions (a range) of which no source can be had."""

    versions: str = Field("", alias="for")
    version: str
    place: Place
    why: str


class Trial(Frozen):
    """One thing to try in the tree of a component, once for each file and each value.

    `run` is for a shell; "" stands for the recipe's own commands before the one that it may resume from. It
    sees a file of those that the globs `files` match, and none in `skip`, as $FILE, a value of each variable
    in `each`, the row's GPU as $GPU, and those variables of the recipe that it names; without `run` it has
    all of them. $SETUP are the commands that the recipe wants before those of who builds on it. It went well
    if it ends with 0, and its output has a match of each regex in `says`, and none of those in `never`.

    `on` are stand-ins, of which the first that has ROCm where the row's base has it is taken, else the first;
    one without ROCm stands in for any. `targets` are globs of GPUs that it is for, none for all. Of the files
    `sample` are drawn, those in `always` among them, unless all are asked for; `absent` says why a source may
    have none. `seconds` is the limit of one. The trials of a stand-in run one after the other in one tree,
    the units of each at the same time; one that is `apart` has a tree and step of its own.
    """

    part: TrialName
    name: str
    on: Annotated[tuple[str, ...], Field(min_length=1)]
    run: str = ""
    files: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    each: dict[str, tuple[str, ...]] = {}
    targets: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    absent: str = ""
    apart: bool = False
    sample: int = Field(8, ge=1)
    seconds: float = 300
    why: str = ""


class Within(Frozen):
    """A tree in a folder of the component's own, from a source of its own: for sources that leave it out.

    `version` is what the place calls it, without what stands behind a `~`; it stands in for versions of the
    component in a range. The component's edits of files in that folder go on it, unless `edits` says that it
    is too new for them.
    """

    folder: str
    versions: str = Field("", alias="for")
    version: str
    edits: bool = True
    place: Place
    trial: tuple[Trial, ...] = ()
    source: str


class Rehearsal(Frozen):
    """What is tried of components, for versions in a range. With `tree` = "stand-in" the tree is that of the
    stand-in's own plan, as it is built there; else it is the source with the edits that apply. `within` are
    trees that no source but upstream's own repository has in it."""

    components: Annotated[tuple[str, ...], Field(min_length=1)]
    versions: str = Field("", alias="for")
    tree: Literal["source", "stand-in"] = "source"
    nearest: tuple[Nearest, ...] = ()
    within: tuple[Within, ...] = ()
    trial: tuple[Trial, ...] = ()


class Book(Frozen):
    """All of it."""

    stand_in: tuple[StandIn, ...] = ()
    place: tuple[RocmPlace, ...] = ()
    rehearsal: tuple[Rehearsal, ...] = ()

    def of(self, component: str, version: str) -> Rehearsal | None:
        """What is tried of a version of a component; None where nobody has written it down."""
        return next(
            (
                rehearsal
                for rehearsal in self.rehearsal
                if component in rehearsal.components and version_in(version, rehearsal.versions)
            ),
            None,
        )

    def rocm_of(self, base: str) -> str:
        """Where a base (`debian:sid`) has ROCm; "" where nobody has written it down."""
        return next(
            (place.rocm for place in self.place if any(fnmatchcase(base, glob) for glob in place.bases)), ""
        )

    def stands_in(self, names: Sequence[str], rocm: str) -> StandIn:
        """The first of the named stand-ins that has ROCm there, or that has none at all; where none has, the
        first of them. Raises InputError for a name that nobody knows."""
        stand_ins = {stand_in.name: stand_in for stand_in in reversed(self.stand_in)}
        for name in names:
            if name not in stand_ins:
                raise InputError(
                    f"there is no stand-in {name}",
                    cause=f"{FILE} has {', '.join(stand_ins)}",
                    next_step=f"correct the trial in {FILE} of the catalog",
                )
        choices = [stand_ins[name] for name in names]
        return next((choice for choice in choices if choice.rocm in ("", rocm)), choices[0])


def read_book(catalog: Catalog) -> Book:
    """What the folders of a catalog say, what the topmost says first. Raises InputError."""
    books = [
        parse(Book, read_table(folder / FILE), folder / FILE)
        for folder in catalog.folders
        if (folder / FILE).exists()
    ]
    return Book(
        stand_in=tuple(stand_in for book in books for stand_in in book.stand_in),
        place=tuple(place for book in books for place in book.place),
        rehearsal=tuple(rehearsal for book in books for rehearsal in book.rehearsal),
    )
