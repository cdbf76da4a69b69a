"""Makes the locks that come with rocwright, from the catalog's facts and the hashes of Python packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rocbase.errors import ExplainedError, InputError
from rocbase.folders.temporary import temporary_folder
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import Catalog, load_catalog
from rocwright.catalog.model import Component
from rocwright.catalog.place import Place, WheelsPlace
from rocwright.home import Home
from rocwright.model.steps import FilePin
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Lock, LockedComponent, LockedPython, Request
from rocwright.plan.resolve.network import NetworkUpstream
from rocwright.plan.resolve.shipped import name_of, requests
from rocwright.plan.resolve.upstream import OfflineUpstream
from rocwright.store import open_store

# Asks an index for the packages that a version of Python needs to have what is wanted.
Resolve = Callable[[str, tuple[str, ...]], LockedPython]

# Asks an index for published wheels and what they require.
Find = Callable[[WheelsPlace], tuple[FilePin, ...]]


class WithHashes(OfflineUpstream):
    """What the catalog says, and Python packages by hash: those `had` for what is still wanted, else what an
    index answers; open where there is none, or it has no answer. Published wheels are locked so where they
    are in the index that pip is set up for; those that a lock `has` are kept."""

    def __init__(
        self,
        packages: Iterable[LockedPython],
        resolve: Resolve | None,
        has: Iterable[LockedComponent] = (),
        find: Find | None = None,
    ) -> None:
        super().__init__()
        self.find = find
        self.published = {
            component.place: component
            for component in has
            if component.kind == "wheels" and not component.pending
        }
        self.known = {
            (package.version, package.wanted): package for package in packages if not package.pending
        }
        self.resolve = resolve

    def python(self, version: str, requirements: tuple[str, ...]) -> LockedPython:
        if (version, requirements) not in self.known and self.resolve is not None:
            try:
                self.known[version, requirements] = self.resolve(version, requirements)
            except ExplainedError as error:
                print(f"Python {version}, {', '.join(requirements)}: {error.message}; {error.cause}")
        return self.known.get((version, requirements)) or super().python(version, requirements)

    def component(self, component: Component, version: str, places: Sequence[Place]) -> LockedComponent:
        named, place = super().component(component, version, places), places[0]
        if not isinstance(place, WheelsPlace) or place.index:
            return named
        if named.place not in self.published and self.find is not None:
            try:
                files = self.find(place)
                self.published[named.place] = named.model_copy(update={"files": files, "pending": ""})
            except ExplainedError as error:
                print(f"{named.place}: {error.message}; {error.cause}\n{error.detail}")
                self.published[named.place] = named
        return self.published.get(named.place, named)


def ship(
    catalog: Catalog, folder: Path, resolve: Resolve | None = None, find: Find | None = None
) -> list[Path]:
    """Write the lock of every row into the folder of a catalog; gives what changed.

    All but the hashes of Python packages is from the catalog's facts alone; those are kept, or asked for.
    """
    changed = []
    previous = {
        request.name: shipped_lock_at(folder / name_of(request), request) for request in requests(catalog)
    }
    packages = [part for lock in previous.values() if lock for part in lock.packages]
    has = [component for lock in previous.values() if lock for component in lock.components]
    outside = WithHashes(packages, resolve, has, find)
    for request in requests(catalog):
        path, old = folder / name_of(request), previous[request.name]
        lock = make_lock(request, catalog, outside, lambda _: None)
        if old is None or old.digest != lock.digest:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_lock(path, lock)
            changed.append(path)
    return changed


def shipped_lock_at(path: Path, request: Request) -> Lock | None:
    """The lock that lies there; None where none does, or it is for something else."""
    try:
        return read_lock(path, request)
    except InputError:
        return None


def main() -> None:
    """Write anew what rocwright carries: after a change of recipes, stacks or bases. Asks pip's index."""
    catalog = load_catalog(DATA)
    with temporary_folder("shipped") as place:
        home = Home(Path(place))
        store = open_store(Path(place) / "store")
        base = next(iter(catalog.bases.values()))
        with NetworkUpstream(base, base.release[0], catalog, store, home, print) as online:
            for path in ship(catalog, DATA, online.python, online.wheels):
                print(path.relative_to(DATA))


if __name__ == "__main__":
    main()
