"""What must be asked upstream about a lock: one question for each source, whoever wants to know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rocwright.catalog.load import Catalog
from rocwright.catalog.place import GitPlace, ImagePlace, IndexPlace
from rocwright.plan.model import (
    ArchiveOrigin,
    DebianOrigin,
    DebianSourceOrigin,
    FilePin,
    ImageOrigin,
    IndexOrigin,
)
from rocwright.resolve.choose import ROCM
from rocwright.resolve.like import catalog_for, pattern_of
from rocwright.resolve.model import Lock, LockedComponent, LockedRoot
from rocwright.resolve.settings import WatchSettings

# the questions


@dataclass(frozen=True, slots=True)
class Refs:
    """Branches and tags of a git repository."""

    url: str

    def __str__(self) -> str:
        return f"git {self.url}"


@dataclass(frozen=True, slots=True)
class TagDay:
    """When a tag was made."""

    url: str
    ref: str
    commit: str

    def __str__(self) -> str:
        return f"the day of {self.ref} at {self.commit[:12]} in {self.url}"


@dataclass(frozen=True, slots=True)
class Project:
    """Files of a project on a package index; the one that pip is set up for where `index` is empty."""

    name: str
    index: str = ""

    def __str__(self) -> str:
        return f"package index {self.index}: {self.name}".replace(" : ", ": ")


@dataclass(frozen=True, slots=True)
class Image:
    """What a tag of a registry names now."""

    reference: str

    def __str__(self) -> str:
        return f"image {self.reference}"


@dataclass(frozen=True, slots=True)
class ImageDay:
    """When an image was made, by its digest."""

    reference: str
    digest: str

    def __str__(self) -> str:
        return f"the day of {self.reference}@{self.digest[:19]}"


@dataclass(frozen=True, slots=True)
class ImageTags:
    """The tags of an image's name."""

    reference: str

    def __str__(self) -> str:
        return f"tags of {self.reference.rpartition(':')[0]}"


@dataclass(frozen=True, slots=True)
class PackageSet:
    """The packages that an archive would install now."""

    suite: str
    architecture: str
    wanted: tuple[str, ...]

    def __str__(self) -> str:
        return f"packages of {self.suite} ({len(self.wanted)} wanted)"


@dataclass(frozen=True, slots=True)
class SourcePackage:
    """The newest source package of that name in an archive."""

    suite: str
    architecture: str
    name: str

    def __str__(self) -> str:
        return f"source package {self.name} of {self.suite}"


@dataclass(frozen=True, slots=True)
class File:
    """How a file at an address stands."""

    url: str

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True, slots=True)
class Listing:
    """A page that lists files."""

    url: str

    def __str__(self) -> str:
        return f"list {self.url}"


Question = (
    Refs | TagDay | Project | Image | ImageDay | ImageTags | PackageSet | SourcePackage | File | Listing
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelled:
    """How a source spells the versions of a thing: what stands before and after them."""

    before: str = ""
    after: str = ""

    def version(self, name: str) -> str:
        """The version that a name spells, or nothing."""
        fits = name.startswith(self.before) and name.endswith(self.after)
        return name[len(self.before) : len(name) - len(self.after)] if fits else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One thing of a lock, and what is asked about it.

    `name` is a component, "rocm", a Python project, or the root with its role; `pins` are its files in the
    lock, `ref` the full tag that the lock has it from, `commit` the commit or digest, `branch` what is
    followed. `spelled` says how its versions are found in the answer; None: only whether it still stands.
    `rolls` says that a tag is meant to move, `address` is where a version lies ("{version}" is
    filled in).
    """

    name: str
    version: str
    question: Question
    pins: tuple[FilePin, ...] = ()
    ref: str = ""
    commit: str = ""
    branch: str = ""
    spelled: Spelled | None = None
    rolls: bool = False
    address: str = ""
    root: LockedRoot | None = None


def watched(lock: Lock, catalog: Catalog, settings: WatchSettings) -> list[Watched]:
    """Everything of a lock that upstream can be asked about."""
    catalog = catalog_for(lock.request, catalog)
    found: list[Watched] = []
    for component in lock.components:
        found += _component(component, catalog, settings)
    if lock.python is not None:
        wanted = [*lock.python.files, *(pin for one in lock.python.sdists for pin in one.files)]
        wanted += [pin for one in lock.python.sdists for pin in one.requires]
        found += _projects(wanted)
    found += _rocm(lock, catalog)
    for root in lock.roots:
        found += _root(root)
    return found


def _component(locked: LockedComponent, catalog: Catalog, settings: WatchSettings) -> Iterator[Watched]:
    recipe = catalog.component(locked.name)
    releases = {one.version: one for one in recipe.release}
    release = releases.get(locked.version)
    places = release.places if release else ()
    branch = settings.branches.get(locked.name, "")
    taken = [pin.origin for pin in locked.files]
    for place in places:
        match place:
            case GitPlace():
                here = locked.kind == "git" and locked.place.startswith(f"git {place.git} ")
                yield _repository(locked, place, branch, here)
            case IndexPlace():
                yield Watched(
                    name=locked.name if place.version == locked.version else place.sdist,
                    version=place.version,
                    question=Project(place.sdist),
                    pins=tuple(pin for pin in locked.files if isinstance(pin.origin, IndexOrigin)),
                    spelled=Spelled(),
                )
            case ImagePlace() if not locked.files:
                yield from _image(locked, place.image, locked.commit or place.digest, ())
            case _:
                pass
    if locked.kind == "git" and not any(isinstance(one, GitPlace) for one in places):
        # a lock of another catalog: its files say where it is from
        for origin in taken:
            if url := getattr(origin, "url", ""):
                yield Watched(
                    name=locked.name,
                    version=locked.version,
                    question=Refs(url),
                    pins=locked.files,
                    commit=locked.commit,
                    branch=branch,
                )
    yield from _standing(locked)


def _repository(locked: LockedComponent, place: GitPlace, branch: str, here: bool) -> Watched:
    found = pattern_of(place.tag, locked.version) if place.tag else None
    return Watched(
        name=locked.name,
        version=locked.version,
        question=Refs(place.git),
        pins=locked.files if here else (),
        ref=f"refs/tags/{place.tag}" if place.tag and here else "",
        commit=locked.commit if here else "",
        branch=branch,
        spelled=Spelled(before=f"refs/tags/{found[0]}", after=found[1]) if found else None,
    )


def _standing(locked: LockedComponent) -> Iterator[Watched]:
    """Whether the files of a component are still what they were."""
    for pin in (*locked.files, *locked.downloads):
        match pin.origin:
            case ArchiveOrigin():
                yield Watched(
                    name=locked.name, version=locked.version, question=File(pin.origin.url), pins=(pin,)
                )
            case DebianSourceOrigin():
                question = SourcePackage(pin.origin.suite, pin.origin.architecture, pin.origin.package)
                yield Watched(
                    name=locked.name, version=pin.origin.version, question=question, pins=locked.files
                )
                return
            case ImageOrigin():
                yield from _image(locked, pin.origin.reference, pin.origin.digest, (pin,))
            case _:
                pass


def _image(
    locked: LockedComponent, reference: str, digest: str, pins: tuple[FilePin, ...]
) -> Iterator[Watched]:
    found = pattern_of(reference.rpartition(":")[2], locked.version)
    yield Watched(
        name=locked.name,
        version=locked.version,
        question=Image(reference),
        pins=pins,
        commit=digest,
        rolls=found is None,
    )
    if found is not None:
        yield Watched(
            name=locked.name,
            version=locked.version,
            question=ImageTags(reference),
            spelled=Spelled(before=found[0], after=found[1]),
        )


def _projects(pins: list[FilePin]) -> Iterator[Watched]:
    by_project: dict[tuple[str, str, str], list[FilePin]] = {}
    for pin in pins:
        if isinstance(pin.origin, IndexOrigin):
            key = pin.origin.project, pin.origin.version, pin.origin.index
            by_project.setdefault(key, []).append(pin)
    for (project, version, index), files in by_project.items():
        once = tuple(dict.fromkeys(files))
        yield Watched(
            name=project, version=version, question=Project(project, index), pins=once, spelled=Spelled()
        )


def _rocm(lock: Lock, catalog: Catalog) -> Iterator[Watched]:
    rocm = lock.rocm
    if rocm is None:
        return
    provider = catalog.provider(rocm.name)
    named = {one.partition("[")[0].partition("=")[0] for one in rocm.wanted}
    for one in _projects([*rocm.files, *(pin for sdist in rocm.sdists for pin in sdist.files)]):
        assert isinstance(one.question, Project)
        first = one.question.name in named and one.version == rocm.version
        yield Watched(
            name=ROCM if first else one.name,
            version=one.version,
            question=one.question,
            pins=one.pins,
            spelled=Spelled() if first else None,
        )
    for pin in rocm.files:
        if isinstance(pin.origin, ArchiveOrigin):
            yield Watched(name=ROCM, version=rocm.version, question=File(pin.origin.url), pins=(pin,))
    if provider.listing and provider.archive:
        filename = provider.archive.rpartition("/")[2]
        for family in dict.fromkeys(provider.family.get(one, "") for one in lock.request.gpu):
            before, _, after = filename.format(family=family, version="\0").partition("\0")
            yield Watched(
                name=ROCM,
                version=rocm.version,
                question=Listing(provider.listing),
                spelled=Spelled(before=before, after=after),
                address=provider.archive.replace("{family}", family),
            )


def _root(root: LockedRoot) -> Iterator[Watched]:
    image = next((pin for pin in root.packages if isinstance(pin.origin, ImageOrigin)), None)
    reference, _, digest = root.image.partition("@")
    if root.image and digest and ":" in reference.rpartition("/")[2]:
        yield Watched(
            name=f"root/{root.role}",
            version=reference.rpartition(":")[2],
            question=Image(reference),
            pins=(image,) if image else (),
            commit=digest,
            rolls=True,
        )
    packaged = any(isinstance(pin.origin, DebianOrigin) for pin in root.packages)
    if packaged and not root.pending:
        yield Watched(
            name=f"root/{root.role}",
            version=root.suite,
            question=PackageSet(root.suite, root.architecture, root.wanted),
            pins=root.packages,
            root=root,
        )
