"""What differs between two locks, pin by pin; and a lock that takes some of the differences."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from rocbase.files.atomic import sha256_bytes
from rocbase.model import Frozen, canonical_json
from rocwright.model.steps import (
    DebianOrigin,
    DebianSourceOrigin,
    FilePin,
    ImageOrigin,
    IndexOrigin,
    PackageOrigin,
)
from rocwright.model.versions import Step, step_between
from rocwright.plan.resolve.model import (
    Lock,
    LockedComponent,
    LockedPython,
    LockedRoot,
    LockedSdist,
    Remedy,
    Request,
)

# What a pin belongs to: what was asked for, what the base brings along, ROCm, a component, a remedy that
# builds have, the Python packages that builds install, the packages of a root and the root itself.
Part = Literal["request", "provided", "rocm", "component", "remedy", "python", "package"]

# `other`: what cannot be ordered (a setting, a digest, a commit under the same version).
Kind = Step | Literal["new", "gone", "other"]

# Digits of a commit or digest that are shown.
SHORT = 12

# What the version of Python that builds use is called, beside what else the base brings along.
BUILD_PYTHON = "python for builds"

# Before the name of a component whose version the request pins.
VERSIONS = "versions."

# What a root is called among its packages: its suite, architecture, image and environment.
ROOT = "root file system"


class PinChange(Frozen):
    """One pin that differs. `where` is the root's role for a package, `before` and `after` are versions, or
    empty where there is none; a commit or digest is added where the versions alone are the same.

    `named` says that recipes or the user ask for it by name; the rest is there because something needs it.
    """

    part: Part
    name: str
    where: str = ""
    before: str = ""
    after: str = ""
    kind: Kind
    named: bool = True


class LockDifference(Frozen):
    """All that differs between two locks, in the order of the parts."""

    changes: tuple[PinChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changes)

    def of(self, part: Part) -> tuple[PinChange, ...]:
        """The changes of one part."""
        return tuple(change for change in self.changes if change.part == part)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pin:
    """What a lock says of one thing; two are the same where `exact` is."""

    version: str
    exact: object
    mark: str = ""
    named: bool = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Pin) and self.exact == other.exact

    __hash__ = None  # type: ignore[assignment]


# Part, role of the root, name.
Key = tuple[Part, str, str]


def difference(old_lock: Lock, new_lock: Lock) -> LockDifference:
    """What differs from one lock to another. When and by what they were made is no difference."""
    old, new = dict(_pins(old_lock)), dict(_pins(new_lock))
    return LockDifference(
        changes=tuple(
            _change(key, old.get(key), new.get(key))
            for key in dict.fromkeys((*old, *new))
            if old.get(key) != new.get(key)
        )
    )


def _change(key: Key, old: _Pin | None, new: _Pin | None) -> PinChange:
    part, role, name = key
    pin = new or old
    assert pin is not None
    old_version, new_version = old.version if old else "", new.version if new else ""
    kind: Kind = "new" if old is None else "gone" if new is None else "other"
    if old is not None and new is not None:
        if old_version == new_version:
            old_version, new_version = (
                f"{old_version} {old.mark}".strip(),
                f"{new_version} {new.mark}".strip(),
            )
        elif part != "request" and old_version and new_version and not old_version.startswith("sha256:"):
            kind = step_between(old_version, new_version)
    return PinChange(
        part=part, where=role, name=name, before=old_version, after=new_version, kind=kind, named=pin.named
    )


def _pins(lock: Lock) -> Iterator[tuple[Key, _Pin]]:
    request = lock.request.model_dump(mode="json", exclude_defaults=True)
    for name, value in request.items():
        if isinstance(value, dict):
            for inner, pinned in value.items():
                yield ("request", "", f"{name}.{inner}"), _Pin(version=str(pinned), exact=pinned)
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield ("request", "", name), _Pin(version=text, exact=value)
    for name, version in lock.provided.items():
        yield ("provided", "", name), _Pin(version=version, exact=version)
    if lock.rocm is not None:
        exact = lock.rocm.model_dump(exclude={"pending", "wanted"})
        mark = _digest_of(*lock.rocm.files, *(pin for sdist in lock.rocm.sdists for pin in sdist.files))
        yield ("rocm", "", lock.rocm.name), _Pin(version=lock.rocm.version, exact=exact, mark=mark)
    for component in lock.components:
        exact = component.model_dump(exclude={"pending", "passed_over", "place"})
        mark = component.commit.removeprefix("sha256:")[:SHORT] or _digest_of(*component.files)
        yield ("component", "", component.name), _Pin(version=component.version, exact=exact, mark=mark)
    for name, remedies in _remedies_by_name(lock).items():
        applied = [remedy.model_dump(mode="json", include={"action", "memory"}) for remedy in remedies]
        yield ("remedy", "", name), _Pin(version="in force", exact=applied, mark="in another way")
    if lock.python is not None:
        yield (
            ("provided", "", BUILD_PYTHON),
            _Pin(version=lock.python.version, exact=lock.python.version),
        )
        required = {_project(requirement) for requirement in lock.python.wanted}
        for pin in lock.python.files:
            name, version = name_and_version(pin)
            yield (
                ("python", "", name),
                _Pin(version=version, exact=pin.sha256, mark=pin.sha256[:SHORT], named=name in required),
            )
        for sdist in lock.python.sdists:
            exact = sdist.model_dump(exclude={"wanted"})
            yield (
                ("python", "", sdist.name),
                _Pin(
                    version=sdist.version,
                    exact=exact,
                    mark=_digest_of(*sdist.files),
                    named=sdist.name in required,
                ),
            )
    for root in lock.roots:
        exact = root.model_dump(include={"base", "manager", "suite", "architecture", "image", "env"})
        mark = sha256_bytes(canonical_json(exact))[:SHORT]
        yield ("package", root.role, ROOT), _Pin(version=root.suite, exact=exact, mark=mark)
        for pin in root.packages:
            name, version = name_and_version(pin)
            yield (
                ("package", root.role, name),
                _Pin(
                    version=version,
                    exact=pin.sha256,
                    mark=pin.sha256[:SHORT],
                    named=name in root.wanted or isinstance(pin.origin, ImageOrigin),
                ),
            )


def _remedies_by_name(lock: Lock) -> dict[str, tuple[Remedy, ...]]:
    """The remedies that builds have, by issue and component."""
    by_name: dict[str, tuple[Remedy, ...]] = {}
    for remedy in lock.in_force:
        name = f"{remedy.issue} for {remedy.component}"
        by_name[name] = (*by_name.get(name, ()), remedy)
    return by_name


def _digest_of(*pins: FilePin) -> str:
    return pins[0].sha256[:SHORT] if len(pins) == 1 else f"{len(pins)} files" if pins else ""


def _project(requirement: str) -> str:
    """The project of a requirement as an index spells it."""
    name = next((index for index, sign in enumerate(requirement) if sign in "=<>!~[;@ "), len(requirement))
    return requirement[:name].lower().replace("_", "-").replace(".", "-")


def name_and_version(pin: FilePin) -> tuple[str, str]:
    """The package of a file and its version; of an image its name and the begin of its digest."""
    match pin.origin:
        case DebianOrigin() | DebianSourceOrigin():
            return pin.origin.package, pin.origin.version
        case IndexOrigin():
            return pin.origin.project, pin.origin.version
        case ImageOrigin():
            return pin.origin.reference, pin.origin.digest[: len("sha256:") + SHORT]
        case PackageOrigin():
            return _split_package(pin.origin.package)
        case _:
            return pin.filename, ""


def _split_package(package: str) -> tuple[str, str]:
    """What a package manager is asked for: `name=version`, or `name-epoch:version-release.arch`."""
    name, equals, version = package.partition("=")
    if equals:
        return name, version
    words = package.rsplit("-", 2)
    if len(words) < 3:
        return package, ""
    return words[0], f"{words[1]}-{words[2].rpartition('.')[0]}".removeprefix("0:")


# a lock that takes some of the differences


def taking(old_lock: Lock, new_lock: Lock, changes: Collection[PinChange]) -> Lock:
    """The lock `old_lock` with these of its differences to `new_lock`: what bisects between two locks.

    All of them give `new_lock`. Of what is asked for, all is taken or nothing, and so of ROCm, of remedies,
    and of a root that comes from an image; other roots and Python packages are taken pin by pin, and whether
    those go together then is for the build to say.
    """
    keys = {(change.part, change.where, change.name) for change in changes}
    complete = {
        (change.part, change.where, change.name) for change in difference(old_lock, new_lock).changes
    } <= keys
    if complete:
        return new_lock
    return old_lock.model_copy(
        update={
            "request": _request(old_lock.request, new_lock.request, _names(keys, "request")),
            "provided": _mixed(old_lock.provided, new_lock.provided, _names(keys, "provided")),
            "rocm": new_lock.rocm if _names(keys, "rocm") else old_lock.rocm,
            "components": tuple(_components(old_lock, new_lock, _names(keys, "component"))),
            "remedies": _remedies(old_lock, new_lock, _names(keys, "remedy")),
            "python": _python(
                old_lock.python,
                new_lock.python,
                _names(keys, "python"),
                BUILD_PYTHON in _names(keys, "provided"),
            ),
            "roots": tuple(_roots(old_lock, new_lock, keys)),
        }
    )


def _names(keys: Iterable[Key], part: Part, root_role: str = "") -> set[str]:
    return {name for kind, role, name in keys if (kind, role) == (part, root_role)}


Pinned = TypeVar("Pinned")


def _mixed(old: Mapping[str, Pinned], new: Mapping[str, Pinned], names: Collection[str]) -> dict[str, Pinned]:
    """What `new` says of the names taken, what `old` says of the others; in the order of `new`."""
    return {
        name: (new if name in names else old)[name]
        for name in dict.fromkeys((*new, *old))
        if name in (new if name in names else old)
    }


def _request(old: Request, new: Request, names: Collection[str]) -> Request:
    versions = {name.removeprefix(VERSIONS) for name in names if name.startswith(VERSIONS)}
    base = new if len(versions) < len(names) else old
    return base.model_copy(update={"versions": _mixed(old.versions, new.versions, versions)})


def _components(old_lock: Lock, new_lock: Lock, names: Collection[str]) -> Iterator[LockedComponent]:
    old = {component.name: component for component in old_lock.components}
    new = {component.name: component for component in new_lock.components}
    yield from _mixed(old, new, names).values()


def _remedies(old_lock: Lock, new_lock: Lock, names: Collection[str]) -> tuple[Remedy, ...]:
    """Those in force as taken; what was useless stays, for it changes no build."""
    if not names:
        return old_lock.remedies
    useless = (remedy for remedy in old_lock.remedies if not remedy.in_force)
    mixed = _mixed(_remedies_by_name(old_lock), _remedies_by_name(new_lock), names).values()
    return (*useless, *(remedy for some in mixed for remedy in some))


def _python(
    old: LockedPython | None, new: LockedPython | None, names: Collection[str], version: bool
) -> LockedPython | None:
    if not (names or version) or old is None or new is None:
        return new if names or version else old
    sdists = _mixed(_by_name(old.sdists), _by_name(new.sdists), names)
    return (new if version else old).model_copy(
        update={"files": _pins_of(old.files, new.files, names), "sdists": tuple(sdists.values())}
    )


def _by_name(sdists: Iterable[LockedSdist]) -> dict[str, LockedSdist]:
    return {sdist.name: sdist for sdist in sdists}


def _pins_of(old: Iterable[FilePin], new: Iterable[FilePin], names: Collection[str]) -> tuple[FilePin, ...]:
    mixed = _mixed(
        {name_and_version(pin)[0]: pin for pin in old},
        {name_and_version(pin)[0]: pin for pin in new},
        names,
    )
    return tuple(sorted(mixed.values(), key=lambda pin: pin.filename))


def _roots(old_lock: Lock, new_lock: Lock, keys: Collection[Key]) -> Iterator[LockedRoot]:
    for role in dict.fromkeys(root.role for root in (*old_lock.roots, *new_lock.roots)):
        old, new = old_lock.root(role), new_lock.root(role)
        names = _names(keys, "package", role)
        root = new if names else old
        if names and old is not None and new is not None and not (old.image or new.image):
            root = (new if ROOT in names else old).model_copy(
                update={"packages": _pins_of(old.packages, new.packages, names)}
            )
        if root is not None:
            yield root
