"""Libraries whose code lies in kpack archives, with the archives for them: of one wheel or of several.

A library and its archives come in different wheels (`torch` and `amd-torch-device-gfx1151`), which are
installed into the same folder. So wheels that are given together are read as if they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rocbase.errors import CheckError
from rocwheel.wheels.members import Member

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from rocwheel.wheels.devicecode.kpack import Archive, Packed
    from rocwheel.wheels.devicecode.kpack_reference import Reference

_ARCHIVES = re.compile(rb"(?:^|[/\n])\.kpack/")
_DIST_INFO = ".dist-info"
_FIELD = re.compile(rb"^(Name|Version|Requires-Dist):[ \t]*(.*?)[ \t\r]*$", re.MULTILINE | re.IGNORECASE)
_DATA = re.compile(r"[^/]+\.data/(?:pure|plat)lib/")


class Place(NamedTuple):
    """A file: where it was looked for (a wheel, a folder, by number), and its path there."""

    tree: int
    path: str


class Kpacked(NamedTuple):
    """A library whose code lies elsewhere: the archives that it leads to and that are here, and what of its
    code they hold, by the names in its reference."""

    reference: Reference
    archives: tuple[Place, ...]
    code: Mapping[str, tuple[Packed, ...]]


class Distribution(NamedTuple):
    """What a wheel's METADATA says of it; `brings` tells whether kpack archives belong to it."""

    name: str
    version: str
    requires: tuple[str, ...]
    brings: bool

    def wheel_for(self, targets: Sequence[str]) -> str:
        """Which wheel has the archives for the first of the targets that it names one for; else ""."""
        extra = [requirement for requirement in _requirements(self.requires) if requirement.marker]
        for target in targets:
            for requirement in extra:
                if _normal(requirement.name).endswith(f"-{target}"):
                    return f"{requirement.name}{requirement.specifier} has those for {target}"
        return ""


def join(libraries: Mapping[Place, Reference], archives: Mapping[Place, Archive]) -> Mapping[Place, Kpacked]:
    """Each library with what the archives hold for it."""
    by_path = {installed(place.path): place for place in archives}
    names = {place: archive.by_name for place, archive in archives.items()}
    joined = {}
    for library, reference in libraries.items():
        archive_targets: dict[Place, str] = {}
        for pattern in reference.patterns(installed(library.path)):
            for path, place in by_path.items():
                if match := pattern.fullmatch(path):
                    archive_targets.setdefault(place, match["target"])
        code: dict[str, list[Packed]] = {key: [] for key in reference.keys}
        for place, target in archive_targets.items():
            by_name = names[place]
            # a library whose wrappers do not say what they want is taken to want all that is there for it
            for key in code if reference.wanted else filter(reference.owns, by_name):
                code.setdefault(key, []).extend(_opened_for(target, by_name.get(key, ()), archives[place]))
        joined[library] = Kpacked(
            reference=reference,
            archives=tuple(archive_targets),
            code={key: tuple(packed) for key, packed in code.items()},
        )
    return joined


def _opened_for(target: str, code: Iterable[Packed], archive: Archive) -> list[Packed]:
    """Of the code of an archive, what the runtime finds.

    It opens the archive by the target in its path, and looks only for targets that the archive lists.
    """
    processor = target.partition(":")[0]
    return [
        packed for packed in code if packed.target_id in archive.targets and processor in ("", packed.target)
    ]


def installed(path: str) -> str:
    """Where a wheel's file lies once it is installed, as far as that is among the packages."""
    return _DATA.sub("", path, count=1)


class MetadataReader:
    """The distributions of a tree, from its files as they come by."""

    def __init__(self) -> None:
        self._metadata: dict[str, dict[str, list[str]]] = {}
        self._brings: set[str] = set()

    def see(self, member: Member) -> None:
        """Look at a file; only METADATA and RECORD are read."""
        folder, _, name = member.path.rpartition("/")
        if not folder.endswith(_DIST_INFO):
            return
        if name == "METADATA":
            self._metadata[folder] = _fields(member.read())
        if name == "RECORD" and _ARCHIVES.search(member.read()):
            self._brings.add(folder)

    def distributions(self, *, archives: bool) -> Iterator[Distribution]:
        """What was seen in a tree; has that kpack archives? Where it is one wheel they are that wheel's."""
        alone = archives and len(self._metadata) == 1
        for folder, fields in self._metadata.items():
            yield Distribution(
                name=_normal("".join(fields["name"][:1])),
                version="".join(fields["version"][:1]),
                requires=tuple(fields["requires-dist"]),
                brings=alone or folder in self._brings,
            )


def check_versions(distributions: Sequence[Distribution]) -> None:
    """Raise CheckError where archives are for another version of a wheel than the one that is here."""
    versions = {distribution.name: distribution.version for distribution in distributions}
    for distribution in distributions:
        for need in _requirements(distribution.requires) if distribution.brings else ():
            version = versions.get(_normal(need.name))
            if version is None or need.marker or _fits(need, version):
                continue
            raise CheckError(
                f"{distribution.name} {distribution.version} has code for {need.name}{need.specifier}, "
                f"and {version} is here",
                cause="the wheels are of different versions, and the names of code need not agree",
                next_step=f"get {distribution.name} {version}, or {need.name}{need.specifier}",
                subject=distribution.name,
            )


def _fits(need: Requirement, version: str) -> bool:
    from packaging.version import InvalidVersion

    try:
        return need.specifier.contains(version, prereleases=True)
    except InvalidVersion:
        return False


def _requirements(texts: Iterable[str]) -> Iterator[Requirement]:
    from packaging.requirements import InvalidRequirement  # most wheels can do without

    from rocwheel.wheels.names import read_requirement

    for text in texts:
        try:
            yield read_requirement(text)
        except InvalidRequirement:
            continue  # a wheel of before, or a word of its own; nothing is concluded from it


def _fields(metadata: bytes) -> dict[str, list[str]]:
    """The headers that are needed; what follows the first empty line is the description."""
    headers = re.split(rb"\r?\n\r?\n", metadata, maxsplit=1)[0]
    fields: dict[str, list[str]] = {"name": [], "version": [], "requires-dist": []}
    for name, value in _FIELD.findall(headers):
        fields[name.decode().lower()].append(value.decode("utf-8", "replace"))
    return fields


def _normal(name: str) -> str:
    """A project's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
