"""The packages of roots: what is asked about those on top of an image, and what is newer, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rocbase.files.atomic import sha256_bytes
from rocwright.catalog.base import PackageManager
from rocwright.catalog.load import Catalog
from rocwright.follow.watch.question import PackageLists
from rocwright.model.steps import FilePin, PackageOrigin
from rocwright.model.versions import is_older
from rocwright.plan.resolve.difference import difference, name_and_version
from rocwright.plan.resolve.model import Lock, LockedRoot
from rocwright.plan.resolve.tell_difference import tell_difference


def on_top(root: LockedRoot) -> tuple[FilePin, ...]:
    """The packages that a root has on top of its image."""
    return tuple(pin for pin in root.packages if isinstance(pin.origin, PackageOrigin))


def lists_of(root: LockedRoot, managers: Mapping[str, PackageManager], day: str) -> PackageLists | None:
    """What asks for the newest of these packages; of a base that is a day's archive, for those of a `day`.

    None where the lock names no lists, or where that day is no later one.
    """
    manager = managers.get(root.manager)
    if manager is None or manager.form is None or not on_top(root):
        return None
    dated = bool(manager.snapshot_of(root.suite))
    lists = manager.lists_of(day, root.architecture) if dated else root.lists
    if not lists or (dated and day <= root.suite):
        return None
    return PackageLists(
        base=f"{root.base}:{root.suite}",
        form=manager.form,
        architecture=root.architecture,
        addresses=lists,
        day=day if dated else "",
    )


def newer(pins: Iterable[FilePin], newest: Mapping[str, object]) -> tuple[FilePin, ...]:
    """The packages, those of which there is a newer version in that version."""
    return tuple(_newer(pin, str(newest.get(name_and_version(pin)[0], ""))) for pin in pins)


def _newer(pin: FilePin, version: str) -> FilePin:
    name, has = name_and_version(pin)
    if not isinstance(pin.origin, PackageOrigin) or not version or not is_older(has, version):
        return pin
    spec = f"{name}={version}"
    origin = pin.origin.model_copy(update={"package": spec})
    # whatever its hash will be, it is another file
    return pin.model_copy(update={"origin": origin, "sha256": sha256_bytes(spec.encode())})


def changes(lock: Lock, root: LockedRoot, packages: tuple[FilePin, ...]) -> str:
    """What other packages change in a root of a lock, in words; nothing where they are the same."""
    new = root.model_copy(update={"packages": packages})
    roots = tuple(new if existing.role == root.role else existing for existing in lock.roots)
    change = difference(lock, lock.model_copy(update={"roots": roots}))
    return "; ".join(tell_difference(change)) if change else ""


def unseen(locks: Iterable[Lock], catalog: Catalog) -> Iterator[str]:
    """The bases of roots with packages on top of an image, of whose archive the lock names no lists."""
    for root in (root for lock in locks for root in lock.roots):
        manager = catalog.managers.get(root.manager)
        dated = manager is not None and manager.form and manager.snapshot_of(root.suite)
        if on_top(root) and not root.lists and not dated:
            yield f"{root.base}:{root.suite}"
