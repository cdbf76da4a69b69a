"""What must be asked upstream about a lock: one question for each source, whoever wants to know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from packaging.requirements import Requirement

from rocwright.catalog.base import BaseRelease
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Scheme
from rocwright.catalog.place import ANY_COMMIT, GitPlace, ImagePlace, IndexPlace, WheelsPlace
from rocwright.catalog.provider import Provider
from rocwright.follow.watch.packages import lists_of, on_top
from rocwright.follow.watch.question import (
    Image,
    ImageTags,
    Listing,
    PackageLists,
    PackageSet,
    Project,
    Question,
    Refs,
    RemoteFile,
    SourcePackage,
)
from rocwright.model.steps import (
    ArchiveOrigin,
    DebianOrigin,
    DebianSourceOrigin,
    FilePin,
    ImageOrigin,
    IndexOrigin,
)
from rocwright.plan.resolve.aliases import base_of, catalog_for, pattern_of, without_commit
from rocwright.plan.resolve.choose import ROCM
from rocwright.plan.resolve.model import Lock, LockedComponent, LockedProvider, LockedRoot
from rocwright.plan.resolve.settings import Take, WatchSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelled:
    """How a source spells the versions of a thing: what stands before and after them, "*" for a commit."""

    before: str = ""
    after: str = ""

    def version(self, name: str) -> str:
        """The version that a name spells, or nothing."""
        after = re.escape(self.after).replace(re.escape(ANY_COMMIT), "[0-9a-f]{7,40}")
        match = re.fullmatch(f"{re.escape(self.before)}(.*){after}", name)
        return match[1] if match else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One thing of a lock, and what is asked about it.

    `name` is a component, "rocm", a Python project, or the root with its role; `pins` are its files in the
    lock, `ref` the full tag that the lock has it from, `commit` the commit or digest, `branch` what is
    followed. `spelled` says how its versions are found in the answer; None: only whether it still stands.
    `scheme` says how they follow each other.
    `rolls` says that a tag is meant to move, `elsewhere` that the lock has it from another place than the
    one asked, `address` is where a version lies ("{version}" is filled in).
    """

    name: str
    version: str
    question: Question
    pins: tuple[FilePin, ...] = ()
    ref: str = ""
    commit: str = ""
    branch: str = ""
    spelled: Spelled | None = None
    scheme: Scheme = "release"
    rolls: bool = False
    elsewhere: bool = False
    address: str = ""
    root: LockedRoot | None = None


def watched(lock: Lock, catalog: Catalog, settings: WatchSettings, today: datetime) -> list[Watched]:
    """Everything of a lock that upstream can be asked about."""
    catalog = catalog_for(lock.request, catalog)
    subjects: list[Watched] = []
    for component in lock.components:
        scheme = catalog.component(component.name).scheme
        found = _component(component, catalog, settings.branches.get(component.name, ""))
        subjects += (replace(subject, scheme=scheme) for subject in found)
    if lock.python is not None:
        pins = [*lock.python.files, *(pin for sdist in lock.python.sdists for pin in sdist.files)]
        pins += [pin for sdist in lock.python.sdists for pin in sdist.requires]
        subjects += _projects(pins)
    if lock.rocm is not None:
        subjects += _rocm(lock.rocm, lock.request.gpu, catalog.provider(lock.rocm.name), settings.take)
    day = (today - timedelta(days=settings.cool_down)).date().isoformat()
    release = base_of(lock, catalog)[1]
    for root in lock.roots:
        subjects += _root(root, release, lists_of(root, catalog.managers, day))
    return subjects


def unasked(lock: Lock, subjects: Iterable[Watched]) -> list[str]:
    """Return the components of a lock that nothing is asked about; what rocwright carries has no upstream."""
    names = {subject.name for subject in subjects}
    return [entry.name for entry in lock.components if entry.kind != "builtin" and entry.name not in names]


def _component(locked: LockedComponent, catalog: Catalog, branch: str) -> Iterator[Watched]:
    subject = partial(Watched, name=locked.name, version=locked.version)
    release = next(
        (entry for entry in catalog.component(locked.name).release if entry.version == locked.version), None
    )
    places = release.places if release else ()
    for place in places:
        match place:
            case GitPlace():
                yield _repository(locked, place, branch)
            case IndexPlace():
                yield subject(
                    name=locked.name if place.version == locked.version else place.sdist,
                    version=place.version,
                    question=Project(place.sdist),
                    pins=tuple(pin for pin in locked.files if isinstance(pin.origin, IndexOrigin)),
                    spelled=Spelled(),
                )
            case WheelsPlace():
                # the first is the one whose version the component has
                yield subject(
                    question=Project(place.wheels[0].partition("[")[0].partition("=")[0], place.index),
                    pins=tuple(pin for pin in locked.files if isinstance(pin.origin, IndexOrigin)),
                    spelled=Spelled(),
                )
            case ImagePlace() if not locked.files:
                yield from _image(locked, place.image, locked.commit or place.digest, ())
            case _:
                pass
    if locked.kind == "git" and not any(isinstance(place, GitPlace) for place in places):
        # a lock of another catalog: its files say where it is from
        for pin in locked.files:
            if url := getattr(pin.origin, "url", ""):
                yield subject(question=Refs(url), pins=locked.files, commit=locked.commit, branch=branch)
    for pin in (*locked.files, *locked.downloads):
        match pin.origin:
            case ArchiveOrigin() as origin:
                yield subject(question=RemoteFile(origin.url), pins=(pin,))
            case DebianSourceOrigin() as origin:
                question = SourcePackage(origin.suite, origin.architecture, origin.package)
                yield subject(version=origin.version, question=question, pins=locked.files)
                return
            case ImageOrigin() as origin:
                yield from _image(locked, origin.reference, origin.digest, (pin,))
            case _:
                pass


def _repository(locked: LockedComponent, place: GitPlace, branch: str) -> Watched:
    tag = without_commit(place)
    pattern = pattern_of(tag, locked.version) if tag else None
    is_origin = locked.kind == "git" and locked.place.startswith(f"git {place.git} ")
    return Watched(
        name=locked.name,
        version=locked.version,
        question=Refs(place.git),
        pins=locked.files if is_origin else (),
        ref=f"refs/tags/{place.tag}" if place.tag and is_origin and ANY_COMMIT not in place.tag else "",
        commit=locked.commit if is_origin else "",
        branch=branch,
        spelled=Spelled(before=f"refs/tags/{pattern[0]}", after=pattern[1]) if pattern else None,
    )


def _image(
    locked: LockedComponent, reference: str, digest: str, pins: tuple[FilePin, ...]
) -> Iterator[Watched]:
    subject = partial(Watched, name=locked.name, version=locked.version)
    pattern = pattern_of(reference.rpartition(":")[2], locked.version)
    yield subject(question=Image(reference), pins=pins, commit=digest, rolls=pattern is None)
    if pattern is not None:
        yield subject(question=ImageTags(reference), spelled=Spelled(before=pattern[0], after=pattern[1]))


def _projects(pins: Iterable[FilePin]) -> Iterator[Watched]:
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


def _rocm(rocm: LockedProvider, targets: Sequence[str], provider: Provider, take: Take) -> Iterator[Watched]:
    subject = partial(Watched, name=ROCM, version=rocm.version)
    named = list(
        dict.fromkeys(
            Requirement(requirement).name for requirement in rocm.wanted if "://" not in requirement
        )
    )
    projects = list(_projects([*rocm.files, *(pin for sdist in rocm.sdists for pin in sdist.files)]))
    for project in projects:
        first = project.version == rocm.version and project.name in named
        yield replace(project, name=ROCM) if first else replace(project, spelled=None)
    for pin in rocm.files:
        if isinstance(pin.origin, ArchiveOrigin):
            yield subject(question=RemoteFile(pin.origin.url), pins=(pin,))
    for shelf in provider.shelf:
        if not shelf.may_hold_newer(rocm.version) or (shelf.releases != "final" and take != "all"):
            continue
        for question in (Project(name, shelf.index) for name in named if shelf.index):
            if all(project.question != question for project in projects):
                yield subject(question=question, spelled=Spelled(), elsewhere=not shelf.holds(rocm.version))
        if shelf.listing:
            for family in dict.fromkeys(provider.family.get(target, "") for target in targets):
                address = shelf.archive.replace("{family}", family)
                prefix, _, suffix = address.rpartition("/")[2].partition("{version}")
                spelled = Spelled(before=prefix, after=suffix)
                yield subject(question=Listing(shelf.listing), spelled=spelled, address=address)


def _root(root: LockedRoot, release: BaseRelease, lists: PackageLists | None) -> Iterator[Watched]:
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
    if root.pending:
        return
    subject = partial(Watched, name=f"root/{root.role}", version=root.suite, root=root)
    if any(isinstance(pin.origin, DebianOrigin) for pin in root.packages):
        package_set = PackageSet(root.suite, root.architecture, root.wanted, release.over, release.takes)
        yield subject(question=package_set, pins=root.packages)
    if lists:
        yield subject(question=lists, pins=on_top(root))
