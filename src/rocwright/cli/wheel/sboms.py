"""The SBOMs inside wheels, as `wheel inspect` and `wheel diff` tell of them (see rocwheel.cli.caller)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rocbase.errors import ExplainedError
from rocwheel.cli.quick import paths


def sboms(wheel: Path) -> list[dict[str, Any]]:
    """Each SBOM in a wheel: its path, of what it is, how many components; of one that is none, why."""
    if not paths(wheel):
        # most wheels have none, and do without their reader
        return []
    from rocwright.provenance.documents import parse_document
    from rocwright.provenance.embed import sboms_in

    try:
        inside = sboms_in(wheel)
    except ExplainedError:
        # no whole wheel: what is wrong with it is told by who judges it
        return []
    rows = []
    for path, data in inside.items():
        row: dict[str, Any] = {"path": path, "of": "", "components": 0, "edits": 0, "wrong": ""}
        try:
            document = parse_document(data, path)
        except ExplainedError as error:
            row["wrong"] = f"{error.message}: {error.cause}"
        else:
            row["of"] = f"{document.subject} {document.version}".strip()
            row |= {"components": len(document.parts), "edits": len(document.edits)}
        rows.append(row)
    return rows


def line(sbom: dict[str, Any]) -> str:
    """One of these for people."""
    if sbom["wrong"]:
        return f"SBOM  {sbom['path']}: {sbom['wrong']}"
    return (
        f"SBOM  {sbom['path']}: {sbom['components']:,} components, {sbom['edits']:,} edits "
        "(rocwright sbom shows them)"
    )


def compared(old: Path, new: Path, every: bool) -> tuple[dict[str, Any], Sequence[str]]:
    """What the SBOMs of two wheels differ in, as data and as lines; nothing where one has none to be read."""
    if not (sboms(old) and sboms(new)):
        return {}, ()
    from rocwright.cli.sbom.diff import lines
    from rocwright.provenance.compare import compare
    from rocwright.provenance.sbom_of import read_document

    try:
        comparison = compare(read_document(old), read_document(new))
    except ExplainedError:
        return {}, ()
    return asdict(comparison), list(lines(comparison, every))
