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


def listing(found: Inspection) -> Iterator[str | AlignedTable]:
    """Lines of text and tables, in their order."""
    if found.loose:
        yield AlignedTable(
            ("folder", "files of", "target", "files", "bytes"),
            [(one.folder, one.kind, one.target, f"{one.count:,}", f"{one.size:,}") for one in found.loose],
            (3, 4),
        )
        yield ""
    if not found.libraries:
        yield f"no {'other ' if found.loose else ''}GPU code in {found.path}"
        yield from (f"{one.path}: {one.reason}" for one in found.without_code)
        return
    rows = [row for library in found.libraries if library.kind != "code object" for row in _rows(library)]
    rows += _lone(found)
    yield AlignedTable(("file", "target", "code objects", "bytes", ""), rows, (2, 3))
    if len(found.libraries) > 1:
        yield ""
        total = [("all files", *_cells(one)) for one in found.totals]
        yield AlignedTable(("", "target", "code objects", "bytes", ""), total, (2, 3))


def _rows(library: GpuLibrary) -> list[tuple[str, ...]]:
    owner = f" ({library.distribution})" if library.distribution else ""
    head = (f"{library.path}{owner}", "", "", f"{library.size:,}", _form(library))
    notes = [("", "", "", "", f"cannot be read: {why}") for why in library.unread]
    return [head, *(("", *_cells(one)) for one in library.targets), *notes]


def _lone(found: Inspection) -> list[tuple[str, ...]]:
    """Files that are one code object each, counted by folder, ending and target."""
    rows: list[tuple[str, ...]] = []
    for name, code in _grouped(found).items():
        alone = len(code) == 1
        told = "a code object" if alone else f"{len(code):,} files, a code object each"
        rows.append((code[0].path if alone else name, "", "", f"{sum(one.size for one in code):,}", told))
        rows += [("", *_cells(one)) for one in by_target(code)]
    return rows


def _grouped(found: Inspection) -> Mapping[str, Sequence[CodeObject]]:
    """Code objects that are files, by folder and ending; where folders have one each, by the folder above."""
    owners = {one.path: one.distribution for one in found.libraries if one.kind == "code object"}
    code = [one for library in found.libraries if library.kind == "code object" for one in library.code]

    def name(one: CodeObject, levels: int) -> str:
        path = PurePosixPath(one.path)
        owner = f" ({owners[one.path]})" if owners[one.path] else ""
        stars = ["*"] * levels
        return f"{PurePosixPath(*path.parts[: -levels - 1], *stars, '*' + path.suffix)}{owner}"

    in_folder = Counter(name(one, 0) for one in code)
    alone = [one for one in code if "/" in one.path and in_folder[name(one, 0)] == 1]
    above = Counter(name(one, 1) for one in alone)
    told = {one.path for one in alone if above[name(one, 1)] > 1}
    groups: dict[str, list[CodeObject]] = {}
    for one in code:
        groups.setdefault(name(one, int(one.path in told)), []).append(one)
    return groups


def _cells(one: TargetCode) -> tuple[str, str, str, str]:
    covers = f"covers {', '.join(one.covers)}" if one.covers else ""
    return one.target_id, f"{one.count:,}", f"{one.size:,}", covers


def _form(library: GpuLibrary) -> str:
    told = []
    for form in library.bundles:
        bundles = count(form.count, "bundle")
        if form.compression:
            told.append(
                f"{bundles}, {form.compression} (CCOB {form.version}): "
                f"{form.size:,} bytes for {form.unpacked_size:,}"
            )
        else:
            told.append(bundles)
    for embedded in library.embedded:
        parts = [count(embedded.bundles, "bundle")] if embedded.bundles else []
        parts += [count(embedded.code_objects, "code object")] if embedded.code_objects else []
        told.append(f"embedded in {embedded.section}: {', '.join(parts)}")
    if library.kind == "kpack archive":
        told.append("a kpack archive")
    if (elsewhere := library.kpacked) is not None:
        there = f"here for {', '.join(elsewhere.targets)}" if elsewhere.targets else "here for no target"
        told.append(
            f"code in kpack archives {', '.join(elsewhere.search)}: "
            f"{there if elsewhere.archives else 'not here'}"
        )
    if library.unreached:
        told.append(f"{library.unreached:,} not reached by any wrapper")
    return "; ".join(told)
