"""What differs between two locks, as changes that can be made one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeVar

from rocwright.errors import InputError
from rocwright.models import Frozen
from rocwright.plan.model import DebianOrigin, FilePin
from rocwright.resolve.model import Lock, LockedComponent, LockedRoot, Request

T = TypeVar("T")
PinKind = Literal["component", "rocm", "python", "base", "packages"]


class Pin(Frozen):
    """One change from a good lock to a bad one; `names` are what it moves: components, or packages.

    `before` and `after` are versions as people say them, "" for none.
    """

    kind: PinKind
    names: tuple[str, ...]
    before: str
    after: str

    @property
    def label(self) -> str:
        """The change in a few words."""
        first, *rest = self.names
        more = f" and {len(rest)} more" if rest else ""
        return f"{first}{more} {self.before or '(none)'} -> {self.after or '(none)'}"


def pins(good: Lock, bad: Lock) -> tuple[Pin, ...]:
    """The changes between two locks of one request, those of components first, the last built first.

    Raises InputError where the locks answer different requests.
    """
    _same_request(good.request, bad.request)
    old = {one.name: one for one in good.components}
    new = {one.name: one for one in bad.components}
    # what comes last in a stack is built of the rest: it is the likelier culprit, and cheaper to try
    names = [name for name in dict.fromkeys([*new, *old]) if old.get(name) != new.get(name)][::-1]
    found = [
        Pin(kind="component", names=(name,), before=_version(old.get(name)), after=_version(new.get(name)))
        for name in names
    ]
    if good.rocm != bad.rocm:
        before, after = (one.version if one else "" for one in (good.rocm, bad.rocm))
        found.append(Pin(kind="rocm", names=("rocm",), before=before, after=after))
    if good.python != bad.python:
        found.append(Pin(kind="python", names=("python packages",), before="", after=""))
    if good.roots != bad.roots or good.provided != bad.provided:
        found.append(Pin(kind="base", names=(good.request.base,), before=_day(good), after=_day(bad)))
    return tuple(found)


def package_pins(good: Lock, bad: Lock) -> tuple[Pin, ...]:
    """What differs between the root file systems of two locks: packages that changed from one version to
    one other together, as those of one source do. Empty where the roots are not made of packages alone."""
    if any(root.image for lock in (good, bad) for root in lock.roots) or _roles(good) != _roles(bad):
        return ()
    old, new = _versions(good.roots), _versions(bad.roots)
    moved: dict[tuple[str, str], list[str]] = {}
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            moved.setdefault((old.get(name, ""), new.get(name, "")), []).append(name)
    return tuple(
        Pin(kind="packages", names=tuple(names), before=before, after=after)
        for (before, after), names in moved.items()
    )


def mix(good: Lock, bad: Lock, chosen: Iterable[Pin]) -> Lock:
    """The good lock with these changes made."""
    taken = tuple(chosen)
    kinds = {one.kind for one in taken}
    moved = {name for one in taken if one.kind == "component" for name in one.names}
    changes: dict[str, object] = {"components": _components(good, bad, moved)}
    if "rocm" in kinds:
        changes["rocm"] = bad.rocm
    if "python" in kinds:
        changes["python"] = bad.python
    if "base" in kinds:
        changes |= {"roots": bad.roots, "provided": bad.provided}
    elif "packages" in kinds:
        names = {name for one in taken if one.kind == "packages" for name in one.names}
        changes |= {"roots": _roots(good.roots, bad.roots, names), "provided": bad.provided}
    return good.model_copy(update=changes)


def _components(good: Lock, bad: Lock, moved: set[str]) -> tuple[LockedComponent, ...]:
    old = {one.name: one for one in good.components}
    new = {one.name: one for one in bad.components}
    return _mixed(old, new, moved)


def _roots(old: Iterable[LockedRoot], new: Iterable[LockedRoot], moved: set[str]) -> tuple[LockedRoot, ...]:
    after = {root.role: root for root in new}
    return tuple(
        root.model_copy(update={"packages": _mixed(_debs(root), _debs(after[root.role]), moved)})
        for root in old
    )


def _mixed(old: Mapping[str, T], new: Mapping[str, T], moved: set[str]) -> tuple[T, ...]:
    """The old ones, and of the new ones those that moved, in the new order."""
    chosen = ((name, new if name in moved else old) for name in dict.fromkeys([*new, *old]))
    return tuple(side[name] for name, side in chosen if name in side)


def _debs(root: LockedRoot) -> dict[str, FilePin]:
    return {pin.origin.package: pin for pin in root.packages if isinstance(pin.origin, DebianOrigin)}


def _versions(roots: Iterable[LockedRoot]) -> dict[str, str]:
    pinned = (pin.origin for root in roots for pin in root.packages)
    return {one.package: one.version for one in pinned if isinstance(one, DebianOrigin)}


def _roles(lock: Lock) -> list[str]:
    return [root.role for root in lock.roots]


def _same_request(good: Request, bad: Request) -> None:
    changed = [
        name
        for name in ("stack", "gpu", "base", "provider", "extra")
        if getattr(good, name) != getattr(bad, name)
    ]
    if changed:
        raise InputError(
            "the two locks answer different requests",
            cause="; ".join(f"{name}: {getattr(good, name)} and {getattr(bad, name)}" for name in changed),
            next_step="give two locks of one stack, for the same GPUs, on the same base",
        )


def _version(locked: LockedComponent | None) -> str:
    if locked is None:
        return ""
    return f"{locked.version} ({locked.commit[:12]})" if locked.commit else locked.version


def _day(lock: Lock) -> str:
    return lock.created[:10]
