"""The catalog as a request sees it. Releases that the catalog does not know have the facts of one that it
does: `"2.6.1 like 2.6.0"`.

The request says it, in `[versions]`; who asks the catalog about a request or its lock asks `catalog_for`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rocbase.errors import InputError
from rocwright.catalog.address import ArchivePlace
from rocwright.catalog.base import Base, BaseRelease
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Component, Release, Value
from rocwright.catalog.place import ANY_COMMIT, GitPlace, ImagePlace, IndexPlace, Place
from rocwright.plan.resolve.model import Lock, Request

_LIKE = re.compile(r"(?P<version>[^\s@]+) like (?P<known>[^\s@]+)")


def like(version: str, original: str) -> str:
    """How a request says that a version has the facts of one that is known."""
    return f"{version} like {original}"


def known_kin(pin: str, previous: str) -> str:
    """A pin like a version that is itself only like another, by the pin `previous`: like that one then."""
    new, old = _LIKE.fullmatch(pin), _LIKE.fullmatch(previous)
    return like(new["version"], old["known"]) if new and old and new["known"] == old["version"] else pin


def version_pins(versions: Mapping[str, str]) -> dict[str, str]:
    """The versions that components are pinned to by `[versions]`; commits are no versions."""
    return {
        name: match["version"] if (match := _LIKE.fullmatch(text)) else text
        for name, text in versions.items()
        if not text.startswith("@")
    }


def catalog_for(request: Request, catalog: Catalog) -> Catalog:
    """The catalog as a request sees it: with releases taken over from known ones, each as it is built on the
    request's base.

    What the catalog has come to know since stands as it is. Raises InputError where the known one is not.
    """
    components, providers = dict(catalog.components), dict(catalog.providers)
    for name, text in request.versions.items():
        match = _LIKE.fullmatch(text)
        if match is None:
            continue
        version, original = match["version"], match["known"]
        having = [
            key for key, provider in providers.items() if name == ROCM and original in provider.versions
        ]
        for key in having:
            versions = providers[key].versions
            added = () if version in versions else (version,)
            providers[key] = providers[key].model_copy(update={"versions": (*added, *versions)})
        if name in components or not having:
            components[name] = _with_release(catalog.component(name), version, original, bool(having))
    if request.allow_untested:
        components |= {name: _on_any_rocm(components[name]) for name in _untested(request, components)}
    for name, component in components.items():
        if any(release.on for release in component.release):
            releases = tuple(release.for_base(request.base) for release in component.release)
            components[name] = component.model_copy(update={"release": releases})
    general = catalog.general or catalog
    return replace(catalog, components=components, providers=providers, general=general)


def _untested(request: Request, components: Mapping[str, Component]) -> list[str]:
    """The components that are pinned and stand on ROCm. Raises InputError where there is none."""
    pinned = [name for name in request.versions if name in components]
    names = [name for name in pinned if any(ROCM in release.needs for release in components[name].release)]
    if not names:
        raise InputError(
            "--allow-untested has no effect here",
            cause="it applies to components that are pinned and need ROCm, and none is",
            next_step=f"rocwright lock {request.stack} --allow-untested --set NAME=VERSION",
        )
    return names


def _on_any_rocm(component: Component) -> Component:
    """The component with releases that need ROCm in any version."""
    releases = tuple(
        release.model_copy(update={"needs": release.needs | {ROCM: ""}}) if ROCM in release.needs else release
        for release in component.release
    )
    return component.model_copy(update={"release": releases})


def base_of(lock: Lock, catalog: Catalog) -> tuple[Base, BaseRelease]:
    """The base and release that a lock is for, with the Python that it chose there."""
    return catalog.base(lock.request.base, lock.provided.get(PYTHON, ""))


# What a request calls Python and ROCm, whichever provider they come from.
PYTHON, ROCM = "python", "rocm"


def _with_release(component: Component, version: str, original: str, elsewhere: bool) -> Component:
    releases = {release.version: release for release in component.release}
    if version in releases or (original not in releases and elsewhere):
        return component
    if original not in releases:
        raise InputError(
            f"{component.name} {version} cannot use the facts of {original}: the catalog does not have "
            "that version either",
            cause=f"the catalog has {component.name} {', '.join(releases)}",
            next_step="name one of these in [versions] of rocwright.toml",
        )
    return component.model_copy(
        update={"release": (taken_over(releases[original], version), *component.release)}
    )


def taken_over(release: Release, version: str) -> Release:
    """A release of another version with the facts of this one, and no evidence: nobody has tried it."""
    commits = [place.commit for place in release.places if isinstance(place, GitPlace)]
    return release.model_copy(
        update={
            "version": version,
            "places": tuple(_places(release.places, release.version, version)),
            "env": {
                name: _of_version(value, commits, release.version, version)
                for name, value in release.env.items()
            },
            "evidence": "",
            "source": f"taken over from {release.version}: {release.source}",
        }
    )


def _of_version(setting: str | Value, commits: Sequence[str], original: str, version: str) -> str | Value:
    """A variable that names the commit of a release says of another one that its commit is unknown."""
    text = setting if isinstance(setting, str) else setting.value
    last = text.rpartition("-")[2]
    if len(last) < 7 or not any(commit.startswith(last) for commit in commits):
        return setting
    text = text.removesuffix(last) + "unknown"
    text = name_of_version(text, original, version) or text
    return text if isinstance(setting, str) else setting.model_copy(update={"value": text})


def _places(places: Iterable[Place], original: str, version: str) -> Iterator[Place]:
    """The places where the other version must be, as far as their names tell; without hashes."""
    for place in places:
        match place:
            case GitPlace() if (tag := name_of_version(without_commit(place), original, version)) is not None:
                yield place.model_copy(update={"tag": tag, "commit": ""})
            case IndexPlace() if place.version == original:
                yield place.model_copy(update={"version": version})
            case ImagePlace() if (image := name_of_version(place.image, original, version)) is not None:
                yield place.model_copy(update={"image": image, "digest": ""})
            case ArchivePlace() if original in place.url:
                hashes = {"sha256": "", "sha512": ""}
                yield place.model_copy(update={"url": place.url.replace(original, version), **hashes})
            case _:
                pass


def without_commit(place: GitPlace) -> str:
    """Return a tag with ANY_COMMIT for its commit, if it ends with that: another version has another."""
    head, dash, last = place.tag.rpartition("-")
    ends = len(last) >= 7 and place.commit.startswith(last)
    return f"{head}{dash}{ANY_COMMIT}" if ends else place.tag


def name_of_version(name: str, original: str, version: str) -> str | None:
    """What a tag such as `v2.6.0` is called for another version, or None where it does not name its own."""
    pattern = pattern_of(name, original)
    return None if pattern is None else f"{pattern[0]}{version}{pattern[1]}"


def pattern_of(name: str, version: str) -> tuple[str, str] | None:
    """What stands before and after the version in a name; a version that ends in .0 may stand without it."""
    for spelled in (version, version.removesuffix(".0")):
        prefix, match, suffix = name.rpartition(spelled)
        if match and not prefix[-1:].isdigit() and not suffix[:1].isdigit():
            return prefix, suffix
    return None
