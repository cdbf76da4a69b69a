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
# Lines of one kind that are told of a wheel: of more, how many there are.
_MOST_TOLD = 200


def wheel_sbom(path: Path) -> bytes:
    """The bill of materials of a wheel, as CycloneDX JSON.

    Raises InputError for what is no wheel, CheckError where it is damaged or made to deceive.
    """
    stranger = read_stranger(path)
    top = _top(path, stranger)
    natives = [_native(native) for native in stranger.natives]
    requirements, unread = _requirements(stranger.metadata.all("Requires-Dist")[:MOST_REQUIREMENTS])
    facts = [*_facts(path, stranger), *(("requirement-unreadable", text) for text in unread[:_MOST_TOLD])]
    return document(top, [*natives, *requirements], {reference(top): [*natives, *requirements]}, facts)


def _top(path: Path, stranger: Stranger) -> Object:
    metadata = stranger.metadata
    urls = [url.partition(",")[2].strip() for url in metadata.all("Project-URL")]
    return component(
        "library",
        "artifact",
        stranger.name[:_LONGEST],
        stranger.version[:_LONGEST],
        purl=wheel_purl(stranger.name[:_LONGEST], stranger.version[:_LONGEST]),
        sha256=sha256_file(path),
        description=metadata.get("Summary")[:_LONGEST] or None,
        licenses=_several(stranger.licences.licences),
        externalReferences=references("website", _addresses([metadata.get("Home-page"), *urls])),
        properties=properties((("file", path.name), ("size", str(path.stat().st_size)))),
    )


def _facts(path: Path, stranger: Stranger) -> Iterator[tuple[str, str]]:
    """What a table shows above the components."""
    licences = stranger.licences
    yield "file", path.name
    if licences.licences:
        yield "licence", f"{', '.join(licences.licences)} ({licences.told_by})"
    else:
        yield "licence", "none is declared"
    if licences.files:
        yield "licence-files", _joined(licences.files)
    yield from (
        (f"gpu-code:{total.target_id}", _amount(total)) for total in stranger.code.totals[:_MOST_TOLD]
    )
    for number, loose in enumerate(stranger.code.loose[:_MOST_TOLD], 1):
        summary = f"{loose.kind}: {count(loose.count, 'file')}, {loose.size:,} B in {loose.folder}"
        yield f"gpu-files:{loose.target}:{number}", summary
    if stranger.sboms:
        yield "sboms-inside", _joined(stranger.sboms)
    yield from (
        (f"wrong:{number}", problem[:_LONGEST])
        for number, problem in enumerate(stranger.wrong[:_MOST_TOLD], 1)
    )


def _native(native: Native) -> Object:
    """A library or program: by its project where that is known, else by its path."""
    file, origin = native.file, native.origin
    role = "vendored" if native.vendored else "bundled"
    facts = [("role", role), ("file", file.path), ("size", str(file.size))]
    facts += [("soname", file.soname)] if file.soname else []
    facts += [("needs", ", ".join(file.needed)[:_LONGEST])] if file.needed else []
    facts += [("compiler", native.compiler)] if native.compiler else []
    facts += [("gpu-code", ", ".join(file.gpus)[:_LONGEST])] if file.gpus else []
    if native.code is not None:
        facts += [(f"gpu-code:{target.target_id}", _amount(target)) for target in native.code.targets]
    if origin is None:
        facts += [("origin", "not told")] if native.vendored else []
        return component(
            "file",
            f"{role}:{file.path}",
            file.path,
            scope="required",
            sha256=file.sha256,
            properties=properties(facts),
        )
    facts += [("origin", origin.name), ("origin-told-by", origin.told_by)]
    part = component(
        "library",
        f"{role}:{file.path}",
        origin.name[:_LONGEST],
        origin.version[:_LONGEST] or None,
        scope="required",
        sha256=file.sha256,
        licenses=_several(origin.licences),
        externalReferences=references("website", _addresses([origin.url])),
        properties=properties(facts),
    )
    return part | ({"purl": origin.purl} if _is_purl(origin.purl) else {})


def _requirements(texts: Iterable[str]) -> tuple[list[Object], list[str]]:
    """What it wants beside it, and what cannot be read as a requirement."""
    requirements, unread = [], []
    for text in dict.fromkeys(texts):
        try:
            requirement = read_requirement(text)
        except InvalidRequirement:
            unread.append(text[:_LONGEST])
            continue
        requirements.append(
            component(
                "library",
                f"requirement:{text}",
                requirement.name,
                scope="required" if requirement.marker is None else "optional",
                purl=wheel_purl(requirement.name, ""),
                properties=properties((("role", "requirement"), ("requires", text))),
            )
        )
    return requirements, unread


def _several(names: Iterable[str]) -> list[Object]:
    """Licences as the document has them: one expression, or identifiers and names."""
    names = [name for name in names if name]
    if len(names) == 1:
        return licenses(names[0])
    entries = [licenses(name)[0] for name in names]
    # beside another licence an expression has only its text
    entries = [
        {"license": {"name": entry["expression"]}} if "expression" in entry else entry for entry in entries
    ]
    return sorted(
        entries, key=lambda entry: (entry["license"].get("id") or "", entry["license"].get("name") or "")
    )


def _is_purl(text: str) -> bool:
    from packageurl import PackageURL

    try:
        return bool(text) and PackageURL.from_string(text).to_string() == text
    except ValueError:
        return False


def _addresses(urls: Iterable[str]) -> list[str]:
    return [url[:_LONGEST] for url in urls if url.startswith(("https://", "http://"))][:_MOST_TOLD]


def _amount(code: TargetCode) -> str:
    covers = f" (for {', '.join(code.covers)})" if code.covers else ""
    return f"{count(code.count, 'code object')}, {code.size:,} B unpacked{covers}"


def _joined(names: tuple[str, ...]) -> str:
    suffix = f" and {len(names) - _MOST_TOLD:,} more" if len(names) > _MOST_TOLD else ""
    return ", ".join(names[:_MOST_TOLD]) + suffix
