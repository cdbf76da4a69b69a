"""SBOMs as they are read: ours and those of others, in CycloneDX JSON of any version, bounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rocbase.errors import InputError
from rocwright.store.signing.safe_json import LARGEST_SBOM, parse_json, too_large

MOST_COMPONENTS = 200_000
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SbomComponent:
    """A component of an SBOM: `key` is what it is known by whatever its version; `role` what it is for, where
    that is told; `hashes` are written `ALGORITHM:hex`."""

    key: str
    name: str
    version: str
    type: str
    purl: str
    scope: str
    role: str
    licenses: tuple[str, ...]
    hashes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An SBOM: where it was read, what it is of, and its parts in the order of their keys."""

    where: str
    subject: str
    version: str
    serial: str
    properties: Mapping[str, str]
    edits: tuple[tuple[str, str], ...]
    parts: tuple[SbomComponent, ...]


def parse_document(data: bytes, source: str) -> Document:
    """The SBOM that these bytes are. Raises InputError for anything else."""
    document = parse_json(data, "SBOM in CycloneDX JSON")
    if not isinstance(document, dict) or document.get("bomFormat") != "CycloneDX":
        raise InputError(
            f"{source} is not an SBOM in CycloneDX JSON",
            cause="it has no bomFormat = CycloneDX; SPDX and XML are not supported",
            next_step="name a CycloneDX JSON file, or an artifact with its SBOM next to it",
        )
    metadata = _object(document.get("metadata"))
    top = _object(metadata.get("component"))
    parts = list(_parts(document.get("components")))
    if len(parts) > MOST_COMPONENTS:
        raise too_large(source, f"SBOM of a program; it has {len(parts):,} components and so", LARGEST_SBOM)
    return Document(
        where=source,
        subject=_text(top.get("name")) or UNKNOWN,
        version=_text(top.get("version")),
        serial=_text(document.get("serialNumber")),
        properties=_properties(metadata),
        edits=tuple(_edits(_object(top.get("pedigree")))),
        parts=tuple(sorted(parts, key=lambda part: (part.key, part.version))),
    )


def _parts(rows: Any) -> Iterator[SbomComponent]:
    """Components and those within them, whatever the depth."""
    waiting = list(reversed(_list(rows)))
    while waiting:
        row = waiting.pop()
        if not isinstance(row, dict):
            continue
        yield _part(row)
        waiting += reversed(_list(row.get("components")))


def _part(row: Mapping[str, Any]) -> SbomComponent:
    purl, name = _text(row.get("purl")), _text(row.get("name"))
    if group := _text(row.get("group")):
        name = f"{group}/{name}"
    properties = _properties(row)
    role = properties.get("rocwright:role", "")
    return SbomComponent(
        key=_key(purl, name, role),
        name=name or UNKNOWN,
        version=_text(row.get("version")),
        type=_text(row.get("type")),
        purl=purl,
        scope=_text(row.get("scope")) or "required",
        role=role,
        licenses=tuple(sorted(set(_licenses(row.get("licenses"))))),
        hashes=tuple(sorted(_hashes(row.get("hashes")))),
    )


def _key(purl: str, name: str, role: str) -> str:
    """The type and name of a package URL; what is compiled, or only asked for, is told apart."""
    bare = purl.partition("?")[0].partition("#")[0]
    package, separator, _ = bare.rpartition("@")
    key = (package if separator else bare) or name or UNKNOWN
    return f"{key} ({role})" if role in ("requirement", "source") else key


def _licenses(rows: Any) -> Iterator[str]:
    for row in _list(rows):
        inner = _object(_object(row).get("license"))
        if (
            text := _text(_object(row).get("expression"))
            or _text(inner.get("id"))
            or _text(inner.get("name"))
        ):
            yield text


def _hashes(rows: Any) -> Iterator[str]:
    for row in map(_object, _list(rows)):
        if _text(row.get("alg")) and _text(row.get("content")):
            yield f"{row['alg']}:{row['content']}".lower()


def _properties(row: Mapping[str, Any]) -> dict[str, str]:
    rows = map(_object, _list(row.get("properties")))
    return {_text(row.get("name")): _text(row.get("value")) for row in rows}


def _edits(pedigree: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for patch in map(_object, _list(pedigree.get("patches"))):
        for reason in map(_object, _list(patch.get("resolves"))):
            yield _text(reason.get("name")), _text(reason.get("description"))


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
