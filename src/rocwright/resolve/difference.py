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
from rocwright.resolve.model import (
    Lock,
    LockedComponent,
    LockedPython,
    LockedRoot,
    LockedSdist,
    Remedy,
    Request,
)

Part = Literal["request", "provided", "rocm", "component", "remedy", "python", "package"]
"""What a pin belongs to: what was asked for, what the base brings along, ROCm, a component, a remedy that
builds have, the Python packages that builds install, the packages of a root and the root itself."""

Kind = Step | Literal["new", "gone", "other"]
"""`other`: what cannot be ordered (a setting, a digest, a commit under the same version)."""

SHORT = 12
"""Digits of a commit or digest that are shown."""

BUILD_PYTHON = "python for builds"
"""What the version of Python that builds use is called, beside what else the base brings along."""

VERSIONS = "versions."
"""Before the name of a component whose version the request pins."""

ROOT = "root file system"
"""What a root is called among its packages: its suite, architecture, image and environment."""


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
        return tuple(one for one in self.changes if one.part == part)


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


Key = tuple[Part, str, str]
"""Part, role of the root, name."""


def difference(before: Lock, after: Lock) -> LockDifference:
    """What differs from one lock to another. When and by what they were made is no difference."""
    old, new = dict(_pins(before)), dict(_pins(after))
    return LockDifference(
        changes=tuple(
            _change(key, old.get(key), new.get(key))
            for key in dict.fromkeys((*old, *new))
            if old.get(key) != new.get(key)
        )
    )


def _change(key: Key, old: _Pin | None, new: _Pin | None) -> PinChange:
    part, where, name = key
    known = new or old
    assert known is not None
    before, after = old.version if old else "", new.version if new else ""
    kind: Kind = "new" if old is None else "gone" if new is None else "other"
    if old is not None and new is not None:
        if before == after:
            before, after = f"{before} {old.mark}".strip(), f"{after} {new.mark}".strip()
        elif part != "request" and before and after and not before.startswith("sha256:"):
            kind = step_between(before, after)
    return PinChange(
        part=part, where=where, name=name, before=before, after=after, kind=kind, named=known.named
    )


def _pins(lock: Lock) -> Iterator[tuple[Key, _Pin]]:
    asked = lock.request.model_dump(mode="json", exclude_defaults=True)
    for name, value in asked.items():
        if isinstance(value, dict):
            for inner, one in value.items():
                yield ("request", "", f"{name}.{inner}"), _Pin(version=str(one), exact=one)
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield ("request", "", name), _Pin(version=text, exact=value)
    for name, version in lock.provided.items():
        yield ("provided", "", name), _Pin(version=version, exact=version)
    if lock.rocm is not None:
        exact = lock.rocm.model_dump(exclude={"pending", "wanted"})
        mark = _digest_of(*lock.rocm.files, *(pin for one in lock.rocm.sdists for pin in one.files))
        yield ("rocm", "", lock.rocm.name), _Pin(version=lock.rocm.version, exact=exact, mark=mark)
    for one in lock.components:
        exact = one.model_dump(exclude={"pending", "passed_over", "place"})
        mark = one.commit.removeprefix("sha256:")[:SHORT] or _digest_of(*one.files)
        yield ("component", "", one.name), _Pin(version=one.version, exact=exact, mark=mark)
    for name, remedies in _remedies_by_name(lock).items():
        done = [one.model_dump(mode="json", include={"action", "memory"}) for one in remedies]
        yield ("remedy", "", name), _Pin(version="in force", exact=done, mark="in another way")
    if lock.python is not None:
        yield (
            ("provided", "", BUILD_PYTHON),
            _Pin(version=lock.python.version, exact=lock.python.version),
        )
        wanted = {_project(one) for one in lock.python.wanted}
        for pin in lock.python.files:
            name, version = name_and_version(pin)
            yield (
                ("python", "", name),
                _Pin(version=version, exact=pin.sha256, mark=pin.sha256[:SHORT], named=name in wanted),
            )
        for sdist in lock.python.sdists:
            exact = sdist.model_dump(exclude={"wanted"})
            yield (
                ("python", "", sdist.name),
                _Pin(
                    version=sdist.version,
                    exact=exact,
                    mark=_digest_of(*sdist.files),
                    named=sdist.name in wanted,
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
    found: dict[str, tuple[Remedy, ...]] = {}
    for one in lock.in_force:
        name = f"{one.issue} for {one.component}"
        found[name] = (*found.get(name, ()), one)
    return found


def _digest_of(*pins: FilePin) -> str:
    return pins[0].sha256[:SHORT] if len(pins) == 1 else f"{len(pins)} files" if pins else ""


def _project(requirement: str) -> str:
    """The project of a requirement as an index spells it."""
    name = next((at for at, sign in enumerate(requirement) if sign in "=<>!~[;@ "), len(requirement))
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
            return _asked(pin.origin.package)
        case _:
            return pin.filename, ""


def _asked(package: str) -> tuple[str, str]:
    """What a package manager is asked for: `name=version`, or `name-epoch:version-release.arch`."""
    name, equals, version = package.partition("=")
    if equals:
        return name, version
    words = package.rsplit("-", 2)
    if len(words) < 3:
        return package, ""
    return words[0], f"{words[1]}-{words[2].rpartition('.')[0]}".removeprefix("0:")


# a lock that takes some of the differences


def taking(before: Lock, after: Lock, changes: Collection[PinChange]) -> Lock:
    """The lock `before` with these of its differences to `after`: what bisects between two locks.

    All of them give `after`. Of what is asked for, all is taken or nothing, and so of ROCm, of remedies, and
    of a root that comes from an image; other roots and Python packages are taken pin by pin, and whether
    those go together then is for the build to say.
    """
    taken = {(one.part, one.where, one.name) for one in changes}
    whole = {(one.part, one.where, one.name) for one in difference(before, after).changes} <= taken
    if whole:
        return after
    return before.model_copy(
        update={
            "request": _request(before.request, after.request, _names(taken, "request")),
            "provided": _mixed(before.provided, after.provided, _names(taken, "provided")),
            "rocm": after.rocm if _names(taken, "rocm") else before.rocm,
            "components": tuple(_components(before, after, _names(taken, "component"))),
            "remedies": _remedies(before, after, _names(taken, "remedy")),
            "python": _python(
                before.python,
                after.python,
                _names(taken, "python"),
                BUILD_PYTHON in _names(taken, "provided"),
            ),
            "roots": tuple(_roots(before, after, taken)),
        }
    )


def _names(taken: Iterable[Key], part: Part, where: str = "") -> set[str]:
    return {name for one, role, name in taken if (one, role) == (part, where)}


One = TypeVar("One")


def _mixed(old: Mapping[str, One], new: Mapping[str, One], taken: Collection[str]) -> dict[str, One]:
    """What `new` says of the names taken, what `old` says of the others; in the order of `new`."""
    return {
        name: (new if name in taken else old)[name]
        for name in dict.fromkeys((*new, *old))
        if name in (new if name in taken else old)
    }


def _request(before: Request, after: Request, taken: Collection[str]) -> Request:
    versions = {name.removeprefix(VERSIONS) for name in taken if name.startswith(VERSIONS)}
    rest = after if len(versions) < len(taken) else before
    return rest.model_copy(update={"versions": _mixed(before.versions, after.versions, versions)})


def _components(before: Lock, after: Lock, taken: Collection[str]) -> Iterator[LockedComponent]:
    old = {one.name: one for one in before.components}
    new = {one.name: one for one in after.components}
    yield from _mixed(old, new, taken).values()


def _remedies(before: Lock, after: Lock, taken: Collection[str]) -> tuple[Remedy, ...]:
    """Those in force as taken; what was useless stays, for it changes no build."""
    if not taken:
        return before.remedies
    useless = (one for one in before.remedies if not one.in_force)
    mixed = _mixed(_remedies_by_name(before), _remedies_by_name(after), taken).values()
    return (*useless, *(one for some in mixed for one in some))


def _python(
    old: LockedPython | None, new: LockedPython | None, taken: Collection[str], version: bool
) -> LockedPython | None:
    if not (taken or version) or old is None or new is None:
        return new if taken or version else old
    sdists = _mixed(_by_name(old.sdists), _by_name(new.sdists), taken)
    return (new if version else old).model_copy(
        update={"files": _pins_of(old.files, new.files, taken), "sdists": tuple(sdists.values())}
    )


def _by_name(sdists: Iterable[LockedSdist]) -> dict[str, LockedSdist]:
    return {one.name: one for one in sdists}


def _pins_of(old: Iterable[FilePin], new: Iterable[FilePin], taken: Collection[str]) -> tuple[FilePin, ...]:
    mixed = _mixed(
        {name_and_version(pin)[0]: pin for pin in old},
        {name_and_version(pin)[0]: pin for pin in new},
        taken,
    )
    return tuple(sorted(mixed.values(), key=lambda pin: pin.filename))


def _roots(before: Lock, after: Lock, taken: Collection[Key]) -> Iterator[LockedRoot]:
    for role in dict.fromkeys(root.role for root in (*before.roots, *after.roots)):
        old, new = before.root(role), after.root(role)
        names = _names(taken, "package", role)
        found = new if names else old
        if names and old is not None and new is not None and not (old.image or new.image):
            found = (new if ROOT in names else old).model_copy(
                update={"packages": _pins_of(old.packages, new.packages, names)}
            )
        if found is not None:
            yield found
