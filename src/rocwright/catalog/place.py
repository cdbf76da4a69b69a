"""Where a release is to be had: a place in a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from rocbase.model import Frozen
from rocwright.catalog.address import ArchivePlace

# The name of a folder that is no path.
FolderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9+._~-]*$")]


# Stands in a tag for the abbreviated commit that it ends with: only upstream knows that of a new version.
ANY_COMMIT = "*"


class GitPlace(Frozen):
    """A release in a git repository: a tag, a commit, or both; never a branch.

    `held` maps the path of a submodule to a commit other than the one that the repository links.
    """

    git: str
    tag: str = ""
    commit: str = ""
    held: dict[str, str] = {}

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

Place = GitPlace | IndexPlace | DebianPlace | ArchivePlace | BuiltinPlace | ImagePlace | WheelsPlace
