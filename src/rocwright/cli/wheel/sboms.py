"""The SBOMs inside wheels, as `wheel inspect` and `wheel diff` tell of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocwright.errors import RocwrightError

if TYPE_CHECKING:
    from rocwright.provenance.compare import Compared


def sboms(wheel: Path) -> list[dict[str, Any]]:
    """Each SBOM in a wheel: its path, of what it is, how many components; of one that is none, why."""
    if wheel.suffix != ".whl" or not wheel.is_file() or not _may_have_some(wheel):
        return []
    from rocwright.provenance.documents import parse_document
    from rocwright.provenance.embed import sboms_in

    try:
        inside = sboms_in(wheel)
    except RocwrightError:
        # no whole wheel: what is wrong with it is told by who judges it
        return []
    found = []
    for path, data in inside.items():
        row: dict[str, Any] = {"path": path, "of": "", "components": 0, "edits": 0, "wrong": ""}
        try:
            document = parse_document(data, path)
        except RocwrightError as error:
            row["wrong"] = f"{error.what}: {error.cause}"
        else:
            row["of"] = f"{document.subject} {document.version}".strip()
            row |= {"components": len(document.parts), "edits": len(document.edits)}
        found.append(row)
    return found


def _may_have_some(wheel: Path) -> bool:
    """Whether a file lies where SBOMs do (PEP 770): most wheels have none, and do without their reader."""
    from rocwright.wheels.source import FileSource
    from rocwright.wheels.zips import zip_members

    try:
        return any(".dist-info/sboms/" in member.path for member in zip_members(FileSource(wheel)))
    except RocwrightError:
        return False


def lines(wheel: Path) -> list[str]:
    """The same for people."""
    return [
        f"SBOM  {one['path']}: {one['wrong']}"
        if one["wrong"]
        else f"SBOM  {one['path']}: {one['components']:,} components, {one['edits']:,} edits "
        "(rocwright sbom shows them)"
        for one in sboms(wheel)
    ]


def compared(before: Path, after: Path) -> Compared | None:
    """What the SBOMs of two wheels differ in; None where one of them has none that can be read."""
    if not (sboms(before) and sboms(after)):
        return None
    from rocwright.provenance.compare import compare
    from rocwright.provenance.documents import read_document

    try:
        return compare(read_document(before), read_document(after))
    except RocwrightError:
        return None
