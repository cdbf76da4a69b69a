"""One thing that upstream can be asked: who asks the same, asks once."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar

from rocwright.catalog.base import ListForm
from rocwright.model.architecture import Architecture


@dataclass(frozen=True)
class Said:
    """A question says itself in words, by its own fields."""

    words: ClassVar[str]

    def __str__(self) -> str:
        return self.words.format(**asdict(self)).rstrip()


@dataclass(frozen=True)
class Refs(Said):
    """Branches and tags of a git repository."""

    words = "git {url}"
    url: str


@dataclass(frozen=True)
class TagDay(Said):
    """When a tag was made."""

    words = "the day of {ref} at {commit:.12} in {url}"
    url: str
    ref: str
    commit: str


@dataclass(frozen=True)
class Project(Said):
    """Files of a project on a package index; the one that pip is set up for where `index` is empty."""

    words = "{name} on the package index {index}"
    name: str
    index: str = ""


@dataclass(frozen=True)
class Image(Said):
    """What a tag of a registry names now."""

    words = "image {reference}"
    reference: str
    architecture: Architecture = Architecture.X86_64

    def __str__(self) -> str:
        suffix = "" if self.architecture is Architecture.X86_64 else f" for {self.architecture}"
        return f"{super().__str__()}{suffix}"


@dataclass(frozen=True)
class ImageDay(Said):
    """When an image was made, by its digest."""

    words = "the day of {reference}@{digest:.19}"
    reference: str
    digest: str
    architecture: Architecture = Architecture.X86_64


@dataclass(frozen=True)
class ImageTags(Said):
    """The tags of an image's name."""

    words = "other tags of {reference}"
    reference: str


@dataclass(frozen=True)
class PackageSet(Said):
    """The packages that an archive would install now; `over` and `takes` as `DebianArchive` has them."""

    words = "packages of {suite}"
    suite: str
    architecture: str
    wanted: tuple[str, ...]
    over: str = ""
    takes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PackageLists(Said):
    """The newest version of each package in lists of an archive: of a `day` (ISO 8601), or as they are."""

    words = "package lists of {base} {day}"
    base: str
    form: ListForm
    architecture: str
    addresses: tuple[str, ...]
    day: str = ""


@dataclass(frozen=True)
class SourcePackage(Said):
    """The newest source package of that name in an archive."""

    words = "source package {name} of {suite}"
    suite: str
    architecture: str
    name: str


@dataclass(frozen=True)
class RemoteFile(Said):
    """How a file at an address stands."""

    words = "{url}"
    url: str


@dataclass(frozen=True)
class Listing(Said):
    """The files that a page lists, and their days."""

    words = "list {url}"
    url: str


Question = (
    Refs
    | TagDay
    | Project
    | Image
    | ImageDay
    | ImageTags
    | PackageSet
    | PackageLists
    | SourcePackage
    | RemoteFile
    | Listing
)
