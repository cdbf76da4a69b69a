"""The SBOM of a wheel that somebody else built, made from the file alone: the same file, the same bytes.

It says what the wheel declares and what lies in it. Nothing says how it was built.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import InvalidRequirement

from rocbase.files.atomic import sha256_file
from rocbase.units import count
from rocwheel.wheels.inspection import TargetCode
from rocwheel.wheels.names import read_requirement
from rocwright.provenance.cyclonedx import (
    Object,
    component,
    document,
    licenses,
    properties,
    reference,
    references,
)
from rocwright.provenance.purl import wheel_purl
from rocwright.provenance.stranger import Native, Stranger, read_stranger

MOST_REQUIREMENTS = 20_000
_LONGEST = 500
_MOST_TOLD = 200
"""Lines of one kind that are told of a wheel: of more, how many there are."""


def wheel_sbom(path: Path) -> bytes:
    """The bill of materials of a wheel, as CycloneDX JSON.

    Raises InputError for what is no wheel, CheckError where it is damaged or made to deceive.
    """
    found = read_stranger(path)
    top = _top(path, found)
    natives = [_native(one) for one in found.natives]
    wanted, unread = _requirements(found.metadata.all("Requires-Dist")[:MOST_REQUIREMENTS])
    told = [*_told(path, found), *(("requirement-unreadable", one) for one in unread[:_MOST_TOLD])]
    return document(top, [*natives, *wanted], {reference(top): [*natives, *wanted]}, told)


def _top(path: Path, found: Stranger) -> Object:
    metadata = found.metadata
    urls = [one.partition(",")[2].strip() for one in metadata.all("Project-URL")]
    return component(
        "library",
        "artifact",
        found.name[:_LONGEST],
        found.version[:_LONGEST],
        purl=wheel_purl(found.name[:_LONGEST], found.version[:_LONGEST]),
        sha256=sha256_file(path),
        description=metadata.get("Summary")[:_LONGEST] or None,
        licenses=_several(found.licences.licences),
        externalReferences=references("website", _addresses([metadata.get("Home-page"), *urls])),
        properties=properties((("file", path.name), ("size", str(path.stat().st_size)))),
    )


def _told(path: Path, found: Stranger) -> Iterator[tuple[str, str]]:
    """What a table shows above the components."""
    licences = found.licences
    yield "file", path.name
    if licences.licences:
        yield "licence", f"{', '.join(licences.licences)} ({licences.told_by})"
    else:
        yield "licence", "none is declared"
    if licences.files:
        yield "licence-files", _joined(licences.files)
    yield from ((f"gpu-code:{one.target_id}", _amount(one)) for one in found.code.totals[:_MOST_TOLD])
    for number, loose in enumerate(found.code.loose[:_MOST_TOLD], 1):
        what = f"{loose.kind}: {count(loose.count, 'file')}, {loose.size:,} B in {loose.folder}"
        yield f"gpu-files:{loose.target}:{number}", what
    if found.sboms:
        yield "sboms-inside", _joined(found.sboms)
    yield from ((f"wrong:{number}", one[:_LONGEST]) for number, one in enumerate(found.wrong[:_MOST_TOLD], 1))


def _native(one: Native) -> Object:
    """A library or program: by its project where that is known, else by its path."""
    file, origin = one.file, one.origin
    role = "vendored" if one.vendored else "bundled"
    told = [("role", role), ("file", file.path), ("size", str(file.size))]
    told += [("soname", file.soname)] if file.soname else []
    told += [("needs", ", ".join(file.needed)[:_LONGEST])] if file.needed else []
    told += [("compiler", one.compiler)] if one.compiler else []
    told += [("gpu-code", ", ".join(file.gpus)[:_LONGEST])] if file.gpus else []
    if one.code is not None:
        told += [(f"gpu-code:{target.target_id}", _amount(target)) for target in one.code.targets]
    if origin is None:
        told += [("origin", "not told")] if one.vendored else []
        return component(
            "file",
            f"{role}:{file.path}",
            file.path,
            scope="required",
            sha256=file.sha256,
            properties=properties(told),
        )
    told += [("origin", origin.name), ("origin-told-by", origin.told_by)]
    found = component(
        "library",
        f"{role}:{file.path}",
        origin.name[:_LONGEST],
        origin.version[:_LONGEST] or None,
        scope="required",
        sha256=file.sha256,
        licenses=_several(origin.licences),
        externalReferences=references("website", _addresses([origin.url])),
        properties=properties(told),
    )
    return found | ({"purl": origin.purl} if _is_purl(origin.purl) else {})


def _requirements(texts: Iterable[str]) -> tuple[list[Object], list[str]]:
    """What it wants beside it, and what cannot be read as a requirement."""
    found, unread = [], []
    for text in dict.fromkeys(texts):
        try:
            wanted = read_requirement(text)
        except InvalidRequirement:
            unread.append(text[:_LONGEST])
            continue
        found.append(
            component(
                "library",
                f"requirement:{text}",
                wanted.name,
                scope="required" if wanted.marker is None else "optional",
                purl=wheel_purl(wanted.name, ""),
                properties=properties((("role", "requirement"), ("requires", text))),
            )
        )
    return found, unread


def _several(names: Iterable[str]) -> list[Object]:
    """Licences as the document has them: one expression, or identifiers and names."""
    names = [one for one in names if one]
    if len(names) == 1:
        return licenses(names[0])
    found = [licenses(one)[0] for one in names]
    # beside another licence an expression has only its text
    found = [{"license": {"name": one["expression"]}} if "expression" in one else one for one in found]
    return sorted(found, key=lambda one: (one["license"].get("id") or "", one["license"].get("name") or ""))


def _is_purl(text: str) -> bool:
    from packageurl import PackageURL

    try:
        return bool(text) and PackageURL.from_string(text).to_string() == text
    except ValueError:
        return False


def _addresses(urls: Iterable[str]) -> list[str]:
    return [one[:_LONGEST] for one in urls if one.startswith(("https://", "http://"))][:_MOST_TOLD]


def _amount(one: TargetCode) -> str:
    covers = f" (for {', '.join(one.covers)})" if one.covers else ""
    return f"{count(one.count, 'code object')}, {one.size:,} B unpacked{covers}"


def _joined(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _MOST_TOLD:,} more" if len(names) > _MOST_TOLD else ""
    return ", ".join(names[:_MOST_TOLD]) + more
