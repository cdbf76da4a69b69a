"""The source trees that a recipe's places give, as far as they can be had from here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import ExplainedError, FetchError, InputError, NetworkError
from rocbase.folders.temporary import temporary_folder
from rocwright.catalog.load import the_catalog
from rocwright.catalog.model import Component
from rocwright.catalog.place import DebianPlace, GitPlace, ImagePlace, Place, WheelsPlace
from rocwright.config import store_of
from rocwright.execution.fetch import fetch
from rocwright.home import Home
from rocwright.model.architecture import host_architecture
from rocwright.plan.resolve.model import LockedComponent
from rocwright.sources.archive import unpack
from rocwright.sources.bases.tools import Tools
from rocwright.sources.debian import DebianArchive
from rocwright.sources.patching.programs_called import programs_called
from rocwright.sources.patching.series import apply_series, lay_packaging
from rocwright.sources.places import Located, Reach, describe, kind_of, locate
from rocwright.store.model import verified


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRelease:
    """A release at one of its places; `suite` is the archive's suite for a source package."""

    version: str
    place: Place
    suite: str = ""

    @property
    def text(self) -> str:
        return f"{describe(self.place)}{f' ({self.suite})' if self.suite else ''}"

    @property
    def kind(self) -> str:
        """The kind of place as a recipe's edit names it."""
        return kind_of(self.place)


def wanted_trees(component: Component, versions: Sequence[str], suites: Sequence[str]) -> list[PlacedRelease]:
    """Every place of the releases with these versions, in order; all releases where none is named.

    Source packages are looked for in `suites`, or in the suite that the place itself names.

    Raises InputError for a version that the recipe has not.
    """
    releases = [component.released(version) for version in versions] or component.release
    return [
        PlacedRelease(version=release.version, place=place, suite=suite)
        for release in releases
        for place in release.every_place
        for suite in _suites(place, suites)
        if not isinstance(place, ImagePlace | WheelsPlace)
    ]


def _suites(place: Place, suites: Sequence[str]) -> Sequence[str]:
    if not isinstance(place, DebianPlace):
        return ("",)
    return (place.suite,) if place.suite else suites


def lacking_programs(component: Component, version: str, tree: Path) -> dict[str, str]:
    """The programs that commands of a tree call and that no package of the recipe brings -> file and line.

    A program is known by the name of its package, so one that comes in another is not looked for.
    """
    catalog = the_catalog()
    names = {
        package: {package, *(name for of_manager in managers.values() for name in of_manager)}
        for package, managers in catalog.system.packages.items()
    }
    released = {release.version for release in component.release}
    system = component.system_of(version) if version in released else component.system
    brought = {name for package in (*system.build, *system.rocm) for name in names.get(package, ())}
    brought |= {name for release in component.release for name in release.needs}
    called = programs_called(tree, set().union(*names.values()) - brought)
    return dict(sorted(called.items()))


def shelf_here(say: Callable[[str], None], base: str = "") -> tuple[Shelf, list[str]]:
    """Return a shelf of this machine, and the suites in which a lock for the base looks for source packages;
    without a base those of all. Raises InputError for an unknown base."""
    catalog = the_catalog()
    bases = [each for each in catalog.bases.values() if each.made == "packages"]
    machine = host_architecture()
    architecture = next(
        (each.architecture[machine] for each in bases if machine in each.architecture), str(machine)
    )
    shelf = Shelf(Home.default(), catalog.source, architecture, say)
    if base:
        chosen, release = catalog.base(base)
        return shelf, [release.name] if chosen.made == "packages" else []
    return shelf, [release.name for each in bases for release in each.release]


class Shelf:
    """Trees unpacked for a look, from the store or fetched into it; a place that did not answer is not asked
    again."""

    def __init__(
        self,
        home: Home,
        carried: Callable[[str], Path],
        architecture: str,
        say: Callable[[str], None],
    ) -> None:
        self.home = home
        self.store = store_of(home)
        self.carried = carried
        self.architecture = architecture
        self.say = say
        self.archives: dict[str, DebianArchive] = {}
        self.silent: dict[str, str] = {}

    def _archive(self, suite: str) -> DebianArchive:
        if suite not in self.archives:
            archive = DebianArchive(Tools(self.home, self.say), suite, self.architecture)
            archive.refresh()
            self.archives[suite] = archive
        return self.archives[suite]

    @contextmanager
    def tree(self, component: str, release: PlacedRelease) -> Iterator[Path]:
        """The tree, in a folder that goes away. Raises FetchError, NetworkError, PatchError."""
        if isinstance(release.place, GitPlace) and release.place.git in self.silent:
            raise NetworkError(
                f"{release.place.git} does not answer",
                cause=self.silent[release.place.git],
                next_step="check the network, then try again",
            )
        reach = Reach(store=self.store, archive=lambda _: self._archive(release.suite), carried=self.carried)
        try:
            located = locate(component, release.version, [release.place], reach)
        except (FetchError, NetworkError) as error:
            if isinstance(release.place, GitPlace):
                self.silent[release.place.git] = why_not(error)
            raise
        with temporary_folder("tree") as folder:
            fetch(located.files, self.store, self.home, Path(folder) / "fetched", self.say)
            yield self._unpacked(located, Path(folder))

    @contextmanager
    def locked(self, component: LockedComponent) -> Iterator[Path]:
        """The tree of a component as a lock has it, before edits; as `tree`.

        Raises InputError where the lock leaves its hashes open.
        """
        if not component.files:
            raise InputError(
                f"the lock leaves the source of {component.name} open",
                cause=component.pending or "no file of it is named",
                next_step="rocwright lock, where the network can be reached",
            )
        with temporary_folder("tree") as folder:
            fetch(component.files, self.store, self.home, Path(folder) / "fetched", self.say)
            yield self._unpacked(component, Path(folder))

    def _unpacked(self, located: Located | LockedComponent, folder: Path) -> Path:
        tree, patches = folder / "tree", folder / "debian"
        for pin in located.files:
            apart = ".debian.tar." in pin.filename
            unpack(
                verified(self.store, pin.sha256),
                patches if apart else tree,
                filename=pin.filename,
                subdir="" if apart else located.subdir,
                wrapped=not pin.filename.endswith(".tar.zst"),
            )
        apply_series(tree, [patches / "patches" / name for name in located.series], "series")
        lay_packaging(tree, patches, located.packaging)
        return tree


def why_not(error: ExplainedError) -> str:
    """Why a tree could not be had, in a line."""
    if error.detail:
        return error.detail.splitlines()[0].removeprefix("- ").partition(": ")[2] or error.message
    return f"{error.message}: {error.cause}".rstrip(": ")
