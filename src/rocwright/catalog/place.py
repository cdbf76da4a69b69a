"""Where a release is to be had: a place in a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from rocbase.model import Frozen
from rocwright.catalog.address import ArchivePlace
from rocwright.model.steps import GitFolder

# The name of a folder that is no path.
FolderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9+._~-]*$")]


# Stands in a tag for the abbreviated commit that it ends with: only upstream knows that of a new version.
ANY_COMMIT = "*"


class GitPlace(Frozen):
    """A release in a git repository: a tag, a commit, or both; never a branch.

    `held` maps the path of a submodule to a commit other than the one that the repository links. `paths` are
    the folders and files that are fetched, without submodules, and `subdir` is the folder that is built.
    With `repository` the folder `.git-repository` of the tree is a repository of the commit and its trees,
    without the content of files: commands that ask git move it to `.git`.
    """

    git: str
    tag: str = ""
    commit: str = ""
    held: dict[str, str] = {}
    paths: tuple[GitFolder, ...] = ()
    subdir: str = ""
    repository: bool = False

    @model_validator(mode="after")
    def _names_one(self) -> GitPlace:
        if not self.tag and not self.commit:
            raise ValueError("a git place needs a tag or a commit: a branch changes over time")
        return self


class IndexPlace(Frozen):
    """A release that lies in a source distribution on the Python package index, perhaps in a folder of it."""

    sdist: str
    version: str
    subdir: str = ""


class DebianPlace(Frozen):
    """A release in the Debian archive's source packages; `series` names the patches of it that are needed.

    `packaging` names folders beside those patches that the build needs too; they are laid under `debian/`
    in the tree. `suite` is one other than the base's own: an older release of Debian may have what sid has
    no more.
    """

    debian: str
    suite: str = ""
    series: tuple[str, ...] = ()
    packaging: tuple[FolderName, ...] = ()


class BuiltinPlace(Frozen):
    """A tree that rocwright carries."""

    builtin: FolderName


class ImagePlace(Frozen):
    """A container image: the reference with its tag, and the digest where it is known."""

    image: str
    digest: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")] = ""


class WheelsPlace(Frozen):
    """Wheels that somebody else has built and published on a package index, taken as they are.

    `wheels` are Python requirements; one with "{target}" is there for each target. `index` is the index's
    address, the one that pip is set up for where there is none; with `fallback` that one is asked for
    projects that `index` does not have. What these require is taken too, but for projects that another
    component brings, and what only they require: `leave` has their names, as globs.
    A lock says for which `python`.
    """

    wheels: Annotated[tuple[str, ...], Field(min_length=1)]
    index: str = ""
    fallback: bool = False
    leave: tuple[str, ...] = ()
    python: str = ""

    def of(self, targets: Sequence[str], python: str) -> WheelsPlace:
        """The place for these targets and this version of Python."""
        filled = [wheel.replace("{target}", target) for wheel in self.wheels for target in targets]
        return self.model_copy(update={"wheels": tuple(dict.fromkeys(filled)), "python": python})


# The kinds of places, as an edit of a recipe names them.
PlaceKind = Literal["git", "sdist", "debian", "archive", "builtin", "image", "wheels"]

# What names a place -> its kind, which is also its tag: one fault of a place is told once, not for each kind.
_NAMED_BY: dict[str, PlaceKind] = {
    "git": "git",
    "sdist": "sdist",
    "debian": "debian",
    "url": "archive",
    "builtin": "builtin",
    "image": "image",
    "wheels": "wheels",
}


def _kind(place: object) -> str | None:
    fields = place if isinstance(place, Mapping) else vars(place) if isinstance(place, Frozen) else {}
    return next((kind for name, kind in _NAMED_BY.items() if name in fields), None)


Place = Annotated[
    Annotated[GitPlace, Tag("git")]
    | Annotated[IndexPlace, Tag("sdist")]
    | Annotated[DebianPlace, Tag("debian")]
    | Annotated[ArchivePlace, Tag("archive")]
    | Annotated[BuiltinPlace, Tag("builtin")]
    | Annotated[ImagePlace, Tag("image")]
    | Annotated[WheelsPlace, Tag("wheels")],
    Discriminator(
        _kind,
        custom_error_type="place",
        custom_error_message=f"it names no place: one of {', '.join(_NAMED_BY)} is needed",
    ),
]
