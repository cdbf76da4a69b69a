"""The world outside, asked: archives, repositories, indexes and registries that this machine can reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Self

from rocbase.errors import ConflictError, FetchError
from rocwright.catalog.address import FileAddress
from rocwright.catalog.base import Base, BaseRelease, Provided
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Component
from rocwright.catalog.place import ImagePlace, Place, WheelsPlace
from rocwright.catalog.provider import Provider
from rocwright.home import Home
from rocwright.model.architecture import Architecture
from rocwright.model.steps import ArchiveOrigin, FilePin, IndexOrigin
from rocwright.plan.resolve.choose import INSTALLER
from rocwright.plan.resolve.images import ImageRoots, lock_image
from rocwright.plan.resolve.model import (
    Lock,
    LockedComponent,
    LockedProvider,
    LockedPython,
    LockedRoot,
    LockedSdist,
    Role,
)
from rocwright.plan.resolve.upstream import OfflineUpstream
from rocwright.sources import index, web
from rocwright.sources.answers import answers_about, remembered
from rocwright.sources.bases.tools import Tools
from rocwright.sources.debian import DebianArchive
from rocwright.sources.places import Reach, describe, locate
from rocwright.store.model import Store


class NetworkUpstream:
    """Asks outside for a base's release; digests of images in the lock `before` are kept, and with `keep` the
    versions of all its packages too, where they can still be had.

    Of package indexes only what was uploaded `until` then is taken. To be closed.
    """

    def __init__(
        self,
        base: Base,
        release: BaseRelease,
        catalog: Catalog,
        store: Store,
        home: Home,
        on_line: Callable[[str], None],
        previous: Lock | None = None,
        *,
        keep: bool = False,
        until: datetime | None = None,
        architecture: Architecture = Architecture.X86_64,
    ) -> None:
        self.architecture = architecture
        self.base, self.release = base, release
        self.store, self.home, self.on_line = store, home, on_line
        self.before, self.until = previous, until
        self.kept = previous if keep else None
        self.reach = Reach(
            store=store,
            archive=self.archive,
            carried=catalog.source,
            image=self.image,
            wheels=self.wheels,
            known=_known_files(previous),
        )
        self._archives: dict[str, DebianArchive] = {}
        self.images = ImageRoots(
            base,
            release,
            catalog.manager(base),
            store,
            home,
            on_line,
            locked_digest=self._known_root(),
            architecture=architecture,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.images.close()

    def _known_root(self) -> str:
        roots = self.before.roots if self.before is not None else ()
        images = (root.image.partition("@") for root in roots)
        return next((digest for image, _, digest in images if image and image == self.release.image), "")

    def image(self, place: ImagePlace) -> tuple[FilePin, Mapping[str, str]]:
        """An image that a recipe names, in the store, and the variables that it sets. Raises FetchError,
        NetworkError."""
        components = self.before.components if self.before is not None else ()
        commits = (component.commit for component in components if component.place == describe(place))
        digest = place.digest or next(commits, "")
        image = lock_image(place.image, digest, self.store, self.home, self.on_line, self.architecture)
        return image.pin, image.env

    def wheels(self, place: WheelsPlace) -> tuple[FilePin, ...]:
        """Every file that published wheels come to. Raises ConflictError, FetchError, NetworkError."""
        self.on_line(f"lock: {', '.join(place.wheels)}")
        until = None if place.index else self.until
        resolved = index.resolve(
            place.wheels,
            place.python,
            self.architecture,
            self.store,
            endpoint=place.index,
            fallback=place.fallback,
            until=until,
            leave=place.leave,
        )
        return (*resolved.wheels, *(sdist.pin for sdist in resolved.sdists))

    def archive(self, suite: str = "") -> DebianArchive:
        """The archive of a suite, or of the base's own release, refreshed at its first use.

        Raises FetchError, NetworkError.
        """
        name = suite or self.release.name
        if self.base.manager == "apt" and self.release.snapshot:
            name = f"{name}@{self.release.snapshot}"
        if not suite and self.base.made != "packages":
            raise FetchError(
                f"{self.base.name}:{self.release.name} is not a suite of the Debian archive",
                cause=f"its root file system comes from the image {self.release.image}",
                next_step="name another source in the recipe",
            )
        key = f"{name}{'' if suite else ' of the base'}"
        if key not in self._archives:
            archive = DebianArchive(
                Tools(self.home, self.on_line),
                name,
                self.base.architecture[self.architecture],
                over="" if suite else self.release.over,
                takes=() if suite else self.release.takes,
            )
            self.on_line(f"lock: package lists of {name}")
            archive.refresh()
            self._archives[key] = archive
        return self._archives[key]

    def package_version(self, package: Provided) -> str:
        if self.base.made == "image":
            return self.images.version(package.package)
        return self.archive().package_version(package.package)

    def root(self, role: Role, base: Base, release: BaseRelease, packages: tuple[str, ...]) -> LockedRoot:
        if base.made == "image":
            return self.images.root(
                role, base.architecture[self.architecture], packages, self._packages_kept(role)
            )
        archive, kept = self.archive(), self._packages_kept(role)
        root = LockedRoot(
            role=role,
            base=base.name,
            manager=base.manager,
            suite=release.name,
            architecture=base.architecture[self.architecture],
            wanted=packages,
            packages=kept,
        )
        return remembered(
            answers_about(archive.folder),
            LockedRoot,
            root.model_dump(mode="json"),
            lambda: root.model_copy(update={"packages": archive.resolve(packages, kept)}),
        )

    def _packages_kept(self, role: Role) -> tuple[FilePin, ...]:
        root = self.kept.root(role) if self.kept is not None else None
        return root.packages if root is not None else ()

    def component(self, component: Component, version: str, places: Sequence[Place]) -> LockedComponent:
        located = locate(component.name, version, places, self.reach)
        return LockedComponent(
            name=component.name,
            version=version,
            kind=located.kind,
            place=located.place,
            passed_over=located.passed_over,
            commit=located.commit,
            subdir=located.subdir,
            series=located.series,
            packaging=located.packaging,
            files=located.files,
            env=dict(located.env),
            downloads=tuple(map(self._file, component.downloads(version))),
        )

    def _file(self, address: FileAddress) -> FilePin:
        self.on_line(f"lock: {address.filename}")
        return web.find_file(address, self.store, self.reach.known.get(address.url, ""))

    def python(self, version: str, requirements: tuple[str, ...]) -> LockedPython:
        self.on_line(f"lock: Python packages for {', '.join(requirements)}")
        resolved = self._resolve(requirements, version)
        sdists = tuple(self._sdist(sdist, version) for sdist in resolved.sdists)
        return LockedPython(version=version, wanted=requirements, files=resolved.wheels, sdists=sdists)

    def _resolve(self, requirements: tuple[str, ...], python: str) -> index.Resolved:
        """The packages that answer, in the versions of the lock that is kept, if that is possible."""
        previous = self.kept.python if self.kept is not None else None
        locked = (
            {
                pin.origin.project: pin.origin.version
                for pin in (*previous.files, *(file for sdist in previous.sdists for file in sdist.files))
                if isinstance(pin.origin, IndexOrigin)
                and f"{pin.origin.project}=={pin.origin.version}"
                not in set(previous.wanted) - set(requirements)
            }
            if previous is not None
            else {}
        )
        if locked:
            try:
                return index.resolve(
                    requirements, python, self.architecture, self.store, kept=locked, until=self.until
                )
            except ConflictError:
                self.on_line(
                    "lock: some locked Python packages no longer fit: resolving all Python packages again"
                )
        return index.resolve(requirements, python, self.architecture, self.store, until=self.until)

    def _sdist(self, sdist: index.FoundSdist, python: str) -> LockedSdist:
        """What builds a source distribution, exactly. Raises ConflictError where that is one itself."""
        assert isinstance(sdist.pin.origin, IndexOrigin)
        name = sdist.pin.origin.project
        requirements = tuple(sorted({*sdist.build, INSTALLER}))
        self.on_line(f"lock: {name} has no wheel; packages that build one: {', '.join(requirements)}")
        built_by = index.resolve(requirements, python, self.architecture, self.store, until=self.until)
        if built_by.sdists:
            deeper = ", ".join(nested.pin.filename for nested in built_by.sdists)
            raise ConflictError(
                f"building {sdist.pin.filename} needs {deeper}",
                cause="that is itself only a source distribution; building the tools of a build is "
                "not supported",
                next_step="name another version in the recipe, one that has a wheel",
            )
        return LockedSdist(
            name=name,
            version=sdist.pin.origin.version,
            wanted=requirements,
            files=(sdist.pin,),
            requires=built_by.wheels,
        )

    def rocm(self, provider: Provider, version: str, targets: tuple[str, ...]) -> LockedProvider:
        named = OfflineUpstream(self.architecture).rocm(provider, version, targets)
        if provider.kind == "archive":
            files = tuple(map(self._file, provider.archives(version, targets)))
            return named.model_copy(update={"files": files, "pending": ""})
        if provider.kind != "wheels":
            return named
        self.on_line(f"lock: ROCm {version} from {provider.name}")
        python = self.release.python
        endpoint = provider.shelf_of(version).index
        resolved = index.resolve(named.wanted, python, self.architecture, self.store, endpoint=endpoint)
        sdists = tuple(self._sdist(sdist, python) for sdist in resolved.sdists)
        return named.model_copy(update={"files": resolved.wheels, "sdists": sdists, "pending": ""})


def _known_files(previous: Lock | None) -> dict[str, str]:
    """Address -> sha256 of every file that a lock has from the web."""
    if previous is None:
        return {}
    pins = [pin for component in previous.components for pin in (*component.files, *component.downloads)]
    pins += previous.rocm.files if previous.rocm is not None else ()
    return {pin.origin.url: pin.sha256 for pin in pins if isinstance(pin.origin, ArchiveOrigin)}
