"""What `inspect` says of GPU code, as text and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from rocbase.units import count
from rocwheel.wheels.devicecode.code_objects import CodeObject
from rocwheel.wheels.inspection import GpuLibrary, Inspection, TargetCode, by_target


class AlignedTable(NamedTuple):
    """A table whose `right` columns are aligned to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[int]


def listing(inspection: Inspection) -> Iterator[str | AlignedTable]:
    """Lines of text and tables, in their order."""
    if inspection.loose:
        yield AlignedTable(
            ("folder", "files of", "target", "files", "bytes"),
            [
                (loose.folder, loose.kind, loose.target, f"{loose.count:,}", f"{loose.size:,}")
                for loose in inspection.loose
            ],
            (3, 4),
        )
        yield ""
    if not inspection.libraries:
        yield f"no {'other ' if inspection.loose else ''}GPU code in {inspection.path}"
        yield from (f"{file.path}: {file.reason}" for file in inspection.without_code)
        return
    rows = [
        row for library in inspection.libraries if library.kind != "code object" for row in _rows(library)
    ]
    rows += _lone(inspection)
    yield AlignedTable(("file", "target", "code objects", "bytes", ""), rows, (2, 3))
    if len(inspection.libraries) > 1:
        yield ""
        total = [("all files", *_cells(target)) for target in inspection.totals]
        yield AlignedTable(("", "target", "code objects", "bytes", ""), total, (2, 3))


def _rows(library: GpuLibrary) -> list[tuple[str, ...]]:
    owner = f" ({library.distribution})" if library.distribution else ""
    head = (f"{library.path}{owner}", "", "", f"{library.size:,}", _form(library))
    notes = [("", "", "", "", f"cannot be read: {reason}") for reason in library.unread]
    return [head, *(("", *_cells(target)) for target in library.targets), *notes]


def _lone(inspection: Inspection) -> list[tuple[str, ...]]:
    """Files that are one code object each, counted by folder, ending and target."""
    rows: list[tuple[str, ...]] = []
    for name, code in _grouped(inspection).items():
        alone = len(code) == 1
        label = "a code object" if alone else f"{len(code):,} files, a code object each"
        rows.append(
            (
                code[0].path if alone else name,
                "",
                "",
                f"{sum(piece.size for piece in code):,}",
                label,
            )
        )
        rows += [("", *_cells(target)) for target in by_target(code)]
    return rows


def _grouped(inspection: Inspection) -> Mapping[str, Sequence[CodeObject]]:
    """Code objects that are files, by folder and ending; where folders have one each, by the folder above."""
    owners = {
        library.path: library.distribution
        for library in inspection.libraries
        if library.kind == "code object"
    }
    code = [
        piece for library in inspection.libraries if library.kind == "code object" for piece in library.code
    ]

    def name(piece: CodeObject, levels: int) -> str:
        path = PurePosixPath(piece.path)
        owner = f" ({owners[piece.path]})" if owners[piece.path] else ""
        stars = ["*"] * levels
        return f"{PurePosixPath(*path.parts[: -levels - 1], *stars, '*' + path.suffix)}{owner}"

    in_folder = Counter(name(piece, 0) for piece in code)
    alone = [piece for piece in code if "/" in piece.path and in_folder[name(piece, 0)] == 1]
    above = Counter(name(piece, 1) for piece in alone)
    collapsed = {piece.path for piece in alone if above[name(piece, 1)] > 1}
    groups: dict[str, list[CodeObject]] = {}
    for piece in code:
        groups.setdefault(name(piece, int(piece.path in collapsed)), []).append(piece)
    return groups


def _cells(target: TargetCode) -> tuple[str, str, str, str]:
    covers = f"covers {', '.join(target.covers)}" if target.covers else ""
    return target.target_id, f"{target.count:,}", f"{target.size:,}", covers


def _form(library: GpuLibrary) -> str:
    notes = []
    for form in library.bundles:
        bundles = count(form.count, "bundle")
        if form.compression:
            notes.append(
                f"{bundles}, {form.compression} (CCOB {form.version}): "
                f"{form.size:,} bytes for {form.unpacked_size:,}"
            )
        else:
            notes.append(bundles)
    for embedded in library.embedded:
        parts = [count(embedded.bundles, "bundle")] if embedded.bundles else []
        parts += [count(embedded.code_objects, "code object")] if embedded.code_objects else []
        notes.append(f"embedded in {embedded.section}: {', '.join(parts)}")
    if library.kind == "kpack archive":
        notes.append("a kpack archive")
    if (elsewhere := library.kpacked) is not None:
        present = f"here for {', '.join(elsewhere.targets)}" if elsewhere.targets else "here for no target"
        notes.append(
            f"code in kpack archives {', '.join(elsewhere.search)}: "
            f"{present if elsewhere.archives else 'not here'}"
        )
    if library.unreached:
        notes.append(f"{library.unreached:,} not reached by any wrapper")
    return "; ".join(notes)
