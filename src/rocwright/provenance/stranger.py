"""A wheel that somebody else built, read in bounded memory: nothing of it is run or unpacked to the disk."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rocbase.errors import CheckError, ExplainedError
from rocwheel.wheels.elf import MAGIC
from rocwheel.wheels.inspection import GpuLibrary, Inspection, inspect
from rocwheel.wheels.members import Member, members
from rocwheel.wheels.metadata import Headers, dist_info_folder, name_problems, parse_name
from rocwright.provenance.bundled import Bundled, bundled
from rocwright.provenance.documents import SbomComponent, parse_document
from rocwright.provenance.facts import the_facts
from rocwright.provenance.origins import (
    Origin,
    Paragraph,
    compiler_of,
    is_vendored,
    origin,
    package_note,
    paragraphs,
)
from rocwright.store.signing.safe_json import LARGEST_SBOM

_CLASSIFIER = "License :: "
# Characters of a `License:` that is a name; a longer one is the whole text of a licence.
_LONGEST = 200

# How the names of licence files begin that no License-File tells of.
_NAMES = ("licen", "copying", "notice", "copyright")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Licences as SPDX has them, or by name, and which header says so ("" where none does); files of the
    wheel with licences, and those that METADATA names and the wheel has not."""

    licences: tuple[str, ...] = ()
    told_by: str = ""
    files: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def declared(metadata: Headers, folder: str, paths: Collection[str]) -> Declared:
    """What METADATA declares; `folder` is the wheel's *.dist-info, `paths` are all of its files."""
    licences, told_by = _licences(metadata)
    files, missing = _files(metadata.all("License-File"), folder, paths)
    return Declared(licences=licences, told_by=told_by, files=files, missing=missing)


def _licences(metadata: Headers) -> tuple[tuple[str, ...], str]:
    """The most exact that is told: the expression, else the classifiers, else the free text."""
    if expression := metadata.get("License-Expression").strip():
        return (expression[:_LONGEST],), "License-Expression"
    classifiers = [
        classifier for classifier in metadata.all("Classifier") if classifier.startswith(_CLASSIFIER)
    ]
    licences = dict.fromkeys(the_facts().licence_of(classifier) for classifier in classifiers)
    free = metadata.get("License").strip()
    named = free if "\n" not in free and len(free) <= _LONGEST and free.upper() != "UNKNOWN" else ""
    # "BSD License" alone says less than what was written by hand
    if exact := [licence for licence in licences if licence and " " not in licence]:
        return tuple(sorted(exact)), "Classifier"
    if named:
        return (named,), "License"
    if vague := [licence[:_LONGEST] for licence in licences if licence]:
        return tuple(sorted(vague)), "Classifier"
    return ((), "") if not free or named == free else (("see the text in METADATA",), "License")


def _files(
    names: Iterable[str], folder: str, paths: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files with licences by their path in the wheel, and those that are told and not there."""
    files: dict[str, None] = {}
    missing = []
    for name in dict.fromkeys(names):
        places = (f"{folder}/licenses/{name}", f"{folder}/{name}")
        place = next((place for place in places if place in paths), None)
        if place is None:
            missing.append(name)
        else:
            files[place] = None
    for path in sorted(paths):
        inside = path.removeprefix(f"{folder}/")
        if inside != path and inside.rpartition("/")[2].lower().startswith(_NAMES):
            files.setdefault(path)
    return tuple(sorted(files)), tuple(sorted(missing))


_LARGEST_LICENCE = 4 * 1024 * 1024
# Licence files and SBOMs that are read in one wheel, of each kind.
_MOST_TEXTS = 500

# How libraries and programs of Windows and macOS begin (PE/COFF; Mach-O, one machine and several).
_OTHER_BINARIES = (b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """A library or program in a wheel; `vendored`: it lies where libraries from elsewhere are put. `code` is
    what it holds for GPUs."""

    file: Bundled
    vendored: bool
    origin: Origin | None = None
    compiler: str = ""
    code: GpuLibrary | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranger:
    """What is in a wheel: METADATA, licences, libraries and programs, GPU code, SBOMs that others put in.

    `wrong` are contradictions and what could not be read, in words.
    """

    name: str
    version: str
    metadata: Headers
    licences: Declared
    natives: tuple[Native, ...]
    code: Inspection
    sboms: tuple[str, ...]
    wrong: tuple[str, ...]


def read_stranger(path: Path) -> Stranger:
    """Read a wheel. Raises InputError for what is no wheel, CheckError where it is damaged or deceives."""
    name = parse_name(path.name)
    wrong: list[str] = []
    by_path = {member.path: member for member in members(path)}
    folder = dist_info_folder(by_path)
    metadata = Headers(_text(by_path, f"{folder}/METADATA"))
    wheel = Headers(_text(by_path, f"{folder}/WHEEL"))
    wrong += name_problems(name, folder, wheel, metadata)
    licences = declared(metadata, folder, by_path.keys())
    wrong += [
        f"METADATA names the licence file {licence}, which the wheel does not have"
        for licence in licences.missing
    ]
    parts = _parts(by_path, f"{folder}/sboms/", wrong)
    paragraphs = _paragraphs(by_path, licences.files, wrong)
    code = _code(path, wrong)
    holding = {library.path: library for library in code.libraries}
    natives = [
        _native(member, holding.get(member.path), parts, paragraphs)
        for member in by_path.values()
        if member.path in holding or _is_native(member)
    ]
    return Stranger(
        name=metadata.get("Name") or name.name,
        version=metadata.get("Version") or name.version,
        metadata=metadata,
        licences=licences,
        natives=tuple(sorted(natives, key=lambda native: native.file.path)),
        code=code,
        sboms=tuple(parts),
        wrong=tuple(wrong),
    )


def _text(by_path: Mapping[str, Member], path: str, limit: int = 0) -> bytes:
    member = by_path.get(path)
    if member is None:
        raise CheckError(
            f"the wheel has no {path}",
            cause="it is damaged, or was not made by a build tool",
            next_step="get a fresh copy of the wheel",
            subject=path,
        )
    return member.read(limit)


def _code(path: Path, wrong: list[str]) -> Inspection:
    try:
        return inspect(path)
    except CheckError as error:
        wrong.append(f"GPU code cannot be read: {error.message}")
        return Inspection(path=str(path), libraries=())


def _parts(
    by_path: Mapping[str, Member], folder: str, wrong: list[str]
) -> dict[str, tuple[SbomComponent, ...]]:
    """The components of each SBOM that lies in the wheel, by its path."""
    rows: dict[str, tuple[SbomComponent, ...]] = {}
    for path in sorted(path for path in by_path if path.startswith(folder))[:_MOST_TEXTS]:
        try:
            document = parse_document(_text(by_path, path, LARGEST_SBOM), path)
        except ExplainedError as error:
            wrong.append(f"{error.message}: {error.cause}")
            continue
        rows[path] = document.parts
    return rows


def _paragraphs(
    by_path: Mapping[str, Member], files: tuple[str, ...], wrong: list[str]
) -> tuple[Paragraph, ...]:
    """What licence files say of files that were brought along."""
    rows: list[Paragraph] = []
    for path in files[:_MOST_TEXTS]:
        try:
            text = _text(by_path, path, _LARGEST_LICENCE).decode(errors="replace")
        except ExplainedError as error:
            wrong.append(error.message)
            continue
        rows += paragraphs(text, PurePosixPath(path).name)
    return tuple(rows)


def _is_native(member: Member) -> bool:
    return member.head.startswith((MAGIC, *_OTHER_BINARIES)) and not member.path.endswith((".class", ".txt"))


def _native(
    member: Member,
    code: GpuLibrary | None,
    parts: Mapping[str, tuple[SbomComponent, ...]],
    paragraphs: tuple[Paragraph, ...],
) -> Native:
    gpus = tuple(target.target_id for target in code.targets) if code else ()
    source = member.open()
    is_elf = member.head.startswith(MAGIC)
    note = package_note(source) if is_elf else {}
    vendored = is_vendored(member.path)
    return Native(
        file=bundled(member, gpus),
        vendored=vendored,
        origin=origin(member.path, note, parts.items(), paragraphs) if vendored or note else None,
        compiler=compiler_of(source) if is_elf else "",
        code=code,
    )
