"""A file of a lock as a package URL, and the addresses where it can be had.

Source: https://github.com/package-url/purl-spec, types deb, rpm, alpm, pypi, github, oci, generic.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import urlsplit

from packageurl import PackageURL

from rocwright.model.steps import (
    ArchiveOrigin,
    BuiltinOrigin,
    DebianOrigin,
    DebianSourceOrigin,
    FilePin,
    GitOrigin,
    ImageOrigin,
    IndexOrigin,
    PackageOrigin,
)
from rocwright.provenance.facts import the_facts
from rocwright.provenance.materials import Material


def purl_of(material: Material) -> PackageURL:
    """The package URL of what a file holds, exact to the version, or to the digest where it has none."""
    pin = material.pin
    match pin.origin:
        case DebianOrigin() as origin:
            return _packaged(origin, origin.architecture, material)
        case DebianSourceOrigin() as origin:
            return _packaged(origin, "source", material)
        case PackageOrigin() as origin:
            return _from_package(origin, material)
        case IndexOrigin() as origin:
            return PackageURL(
                "pypi", None, _normal(origin.project), origin.version, {"file_name": pin.filename}
            )
        case GitOrigin() as origin:
            return _git(origin, material)
        case ImageOrigin() as origin:
            return _image(origin)
        case ArchiveOrigin() as origin:
            qualifiers = {"download_url": origin.url, "checksum": f"sha256:{pin.sha256}"}
            return PackageURL("generic", None, material.name, material.version or None, qualifiers)
        case BuiltinOrigin():
            return _generic(material)


def addresses(pin: FilePin) -> tuple[str, ...]:
    """Where a file can be had, as the lock says it; nothing where a package manager alone knows."""
    match pin.origin:
        case GitOrigin() as origin:
            return (origin.url,)
        case ArchiveOrigin() as origin:
            return (origin.url,)
        case IndexOrigin() as origin if origin.index:
            return (origin.index,)
        case _:
            return ()


def commit_of(pin: FilePin) -> str:
    """The git commit that a file is the tree of, or ""."""
    return pin.origin.commit if isinstance(pin.origin, GitOrigin) else ""


def wheel_purl(name: str, version: str) -> PackageURL:
    """The package URL of a Python package."""
    return PackageURL("pypi", None, _normal(name), version or None)


def _normal(project: str) -> str:
    return project.lower().replace("_", "-")


def _packaged(origin: DebianOrigin | DebianSourceOrigin, architecture: str, material: Material) -> PackageURL:
    facts = the_facts()
    manager = facts.managers.get(material.root.manager) if material.root else None
    if manager is None or material.root is None:
        return _generic(material)
    # a source package may be of another suite than the root's own
    vendor, distribution = facts.distribution(material.root.base, origin.suite)
    qualifiers = {"arch": architecture, "distro": distribution}
    return PackageURL(manager.type, vendor, origin.package, origin.version, qualifiers)


def _from_package(origin: PackageOrigin, material: Material) -> PackageURL:
    facts = the_facts()
    manager = facts.managers.get(origin.manager)
    parts = manager.read(origin.package) if manager else {}
    if manager is None or not parts:
        return _generic(material)
    vendor, distribution = facts.distribution(origin.base, origin.release)
    qualifiers = {"distro": distribution}
    architecture = parts.get("arch") or (material.root.architecture if material.root else "")
    qualifiers |= {"arch": architecture} if architecture else {}
    qualifiers |= {"epoch": parts["epoch"]} if parts.get("epoch", "0") != "0" else {}
    return PackageURL(manager.type, vendor, parts["name"], parts["version"], qualifiers)


def _git(origin: GitOrigin, material: Material) -> PackageURL:
    place = urlsplit(origin.url)
    parts = PurePosixPath(place.path.removesuffix(".git")).parts[1:]
    forge = the_facts().forges.get(place.hostname or "")
    if forge and len(parts) == 2:
        return PackageURL(forge, parts[0].lower(), parts[1].lower(), origin.commit)
    qualifiers = {"vcs_url": f"git+{origin.url}@{origin.commit}"}
    return PackageURL("generic", None, material.name, material.version or None, qualifiers)


def _image(origin: ImageOrigin) -> PackageURL:
    repository = origin.reference.partition("@")[0]
    place, _, last = repository.rpartition("/")
    name, _, tag = last.partition(":")
    qualifiers = {"repository_url": f"{place}/{name}" if place else name} | ({"tag": tag} if tag else {})
    return PackageURL("oci", None, name.lower(), origin.digest, qualifiers)


def _generic(material: Material) -> PackageURL:
    qualifiers = {"checksum": f"sha256:{material.pin.sha256}"}
    return PackageURL("generic", None, material.name, material.version or None, qualifiers)
