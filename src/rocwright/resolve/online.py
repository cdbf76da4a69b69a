"""The world outside, asked: archives, repositories, indexes and registries that this machine can reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rocwright.catalog.model import Base, BaseRelease, Component, Place, Provided
from rocwright.catalog.provider import Provider
from rocwright.errors import InputError
from rocwright.home import Home
from rocwright.resolve.model import LockedComponent, LockedProvider, LockedPython, LockedRoot, Role
from rocwright.resolve.outside import Offline, architecture
from rocwright.sources import index
from rocwright.sources.debian import DebianArchive
from rocwright.sources.places import Reach, locate
from rocwright.store.model import Store


class Online:
    """Asks outside for a base's release; `carried` holds the trees that rocwright itself brings."""

    def __init__(
        self,
        base: Base,
        release: BaseRelease,
        store: Store,
        home: Home,
        carried: Callable[[str], Path],
        on_line: Callable[[str], None],
    ) -> None:
        self.base, self.release = base, release
        self.store, self.home, self.on_line = store, home, on_line
        self.reach = Reach(store=store, archive=self.archive, carried=carried)
        self._archive: DebianArchive | None = None

    def archive(self) -> DebianArchive:
        """The archive of the base's release, refreshed at its first use. Raises InputError, NetworkError."""
        if self._archive is None:
            if self.base.made != "packages":
                raise InputError(
                    f"{self.base.name}:{self.release.name} cannot be locked: its root comes from an image",
                    cause=f"roots are made from an archive's packages so far, not from {self.release.image}",
                    next_step="use a base that is made from packages, such as debian:sid",
                )
            archive = DebianArchive(self.home.apt, self.release.name, architecture(self.base))
            self.on_line(f"lock: package lists of {archive.suite}")
            archive.refresh()
            self._archive = archive
        return self._archive

    def package_version(self, package: Provided) -> str:
        return self.archive().package_version(package.package)

    def root(self, role: Role, base: Base, release: BaseRelease, wanted: tuple[str, ...]) -> LockedRoot:
        return LockedRoot(
            role=role,
            base=base.name,
            manager=base.manager,
            suite=release.name,
            architecture=architecture(base),
            wanted=wanted,
            packages=self.archive().resolve(wanted),
        )

    def component(self, component: Component, version: str, places: Sequence[Place]) -> LockedComponent:
        found = locate(component.name, version, places, self.reach)
        return LockedComponent(
            name=component.name,
            version=version,
            kind=found.kind,
            place=found.place,
            passed_over=found.passed_over,
            commit=found.commit,
            subdir=found.subdir,
            series=found.series,
            files=found.files,
        )

    def python(self, version: str, wanted: tuple[str, ...]) -> LockedPython:
        self.on_line(f"lock: Python packages for {', '.join(wanted)}")
        files = index.resolve(wanted, version, architecture(self.base), self.store)
        return LockedPython(version=version, wanted=wanted, files=files)

    def rocm(self, provider: Provider, version: str, targets: tuple[str, ...]) -> LockedProvider:
        named = Offline().rocm(provider, version, targets)
        if provider.kind != "wheels":
            return named
        self.on_line(f"lock: ROCm {version} from {provider.name}")
        endpoints = {provider.index[target] for target in targets if target in provider.index}
        files = [
            pin
            for endpoint in sorted(endpoints)
            for pin in index.resolve(
                named.wanted, self.release.python, architecture(self.base), self.store, endpoint=endpoint
            )
        ]
        return named.model_copy(update={"files": tuple(files), "pending": ""})
