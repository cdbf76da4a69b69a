"""Where the libraries that somebody put into a wheel come from, as far as the wheel tells.

Told, the most exact first: the note of the distribution's build in the library itself, SBOMs in the wheel
(auditwheel's has the package that a library was taken from), the paragraphs of a licence file, and, of
libraries that are known by their names, the project alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from packageurl import PackageURL

from rocbase.errors import ExplainedError
from rocwheel.wheels.devicecode.notes import notes
from rocwheel.wheels.elf import Elf
from rocwheel.wheels.repair.facts import the_facts as the_libraries
from rocwheel.wheels.source import ByteSource
from rocwright.provenance.documents import SbomComponent
from rocwright.provenance.facts import the_facts
from rocwright.store.signing.safe_json import parse_json

# What the folders end with into which libraries are put: auditwheel's and delvewheel's, delocate's.
VENDORED = (".libs", ".dylibs")

_PACKAGE_NOTE = 0xCAFE1A7E
_OWNER = b"FDO\0"
_LONGEST_NOTE = 64 * 1024
_MOST_COMMENT = 4096

# auditwheel adds 8 digits of a hash to a library's name, delvewheel 32
_HASHED = re.compile(r"-(?:[0-9a-f]{32}|[0-9a-f]{8})(?=[.-]|$)")
_PARAGRAPH = re.compile(r"^(Name|Files|Availability|License):[ \t]*(.{0,300})$")
_MOST_PARAGRAPHS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The project or package that a library is from; `told_by` says where in the wheel that stands. Empty
    texts are not told."""

    name: str
    version: str = ""
    purl: str = ""
    licences: tuple[str, ...] = ()
    url: str = ""
    told_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """What a licence file says of files that a wheel brings along; `files` is a pattern."""

    name: str
    files: str
    url: str
    licence: str
    where: str


def is_vendored(path: str) -> bool:
    """Whether a file lies in a folder for libraries from elsewhere."""
    return any(part.endswith(VENDORED) for part in PurePosixPath(path).parts[:-1])


def original_name(name: str) -> str:
    """A library's file name without the digits that the tool that put it into the wheel added."""
    return _HASHED.sub("", name)


def package_note(source: ByteSource) -> dict[str, str]:
    """What the note of a distribution's build says in a library; empty where there is none.

    Source: https://systemd.io/ELF_PACKAGE_METADATA/, section .note.package.
    """
    try:
        sections = Elf(source).named(".note.package")
    except ExplainedError:
        return {}
    for section in sections[:4]:
        data = source.read_at(section.offset, min(section.size, _LONGEST_NOTE))
        for note in notes(memoryview(data)):
            if (note.owner, note.kind) == (_OWNER, _PACKAGE_NOTE) and note.complete:
                try:
                    parsed = parse_json(bytes(note.content).rstrip(b"\0"), "package note")
                except ExplainedError:
                    return {}
                rows: dict[str, Any] = parsed if isinstance(parsed, dict) else {}
                return {str(key): str(value)[:200] for key, value in rows.items()}
    return {}


def compiler_of(source: ByteSource) -> str:
    """The compiler that a library's section .comment names first; "" where none does."""
    try:
        sections = Elf(source).named(".comment")
    except ExplainedError:
        return ""
    for section in sections[:1]:
        data = source.read_at(section.offset, min(section.size, _MOST_COMMENT))
        comments = [comment for comment in data.split(b"\0") if comment.strip()]
        return comments[0].decode(errors="replace")[:200] if comments else ""
    return ""


def paragraphs(text: str, source: str) -> Iterator[Paragraph]:
    """What a licence file says of bundled files: `Name:`, `Files:`, `Availability:`, `License:` together."""
    row: dict[str, str] = {}
    count = 0
    for line in text.splitlines():
        match = _PARAGRAPH.match(line)
        if match is None:
            continue
        if match[1] == "Name":
            row = {}
        row[match[1]] = match[2].strip()
        if match[1] == "License" and row.get("Name") and row.get("Files"):
            count += 1
            if count > _MOST_PARAGRAPHS:
                return
            yield Paragraph(
                name=row["Name"],
                files=row["Files"],
                url=row.get("Availability", ""),
                licence=row["License"],
                where=source,
            )
            row = {}


def origin(
    path: str,
    note: dict[str, str],
    parts: Iterable[tuple[str, Sequence[SbomComponent]]],
    paragraphs: Iterable[Paragraph],
) -> Origin | None:
    """Where the library at `path` in a wheel is from; `parts` are the components of each SBOM in it."""
    return (
        _by_note(note)
        or _by_sbom(path, parts)
        or _by_licence(path, paragraphs)
        or _by_name(original_name(PurePosixPath(path).name))
    )


def _by_note(note: dict[str, str]) -> Origin | None:
    name, version, kind = note.get("name", ""), note.get("version", ""), note.get("type", "")
    if not name:
        return None
    # cpe:/o:fedoraproject:fedora:43
    product = note.get("osCpe", "").split(":")[3:4]
    namespace = note.get("os") or next(iter(product), "")
    purl = ""
    if re.fullmatch(r"[a-z][a-z0-9.+-]*", kind):
        arch = note.get("architecture", "")
        purl = PackageURL(
            kind, namespace or None, name, version or None, {"arch": arch} if arch else {}
        ).to_string()
    return Origin(name=name, version=version, purl=purl, told_by="note in the library")


def _by_sbom(path: str, parts: Iterable[tuple[str, Sequence[SbomComponent]]]) -> Origin | None:
    name = original_name(PurePosixPath(path).name)
    project = the_facts().project_of(_stem(name))
    names = {
        _bare(spelling) for spelling in (name, *((project.project, *project.also) if project else ()))
    } - {""}
    for sbom, rows in parts:
        for part in rows:
            if _bare(part.name) in names:
                return Origin(
                    name=part.name,
                    version=part.version,
                    purl=part.purl,
                    licences=part.licenses,
                    told_by=f"{PurePosixPath(sbom).name}, by its name",
                )
    return None


def _by_licence(path: str, paragraphs: Iterable[Paragraph]) -> Origin | None:
    # patterns end with .so, and files go on with a version
    names = {path, path.partition(".so")[0] + ".so"} if ".so" in path else {path}
    matches = [
        paragraph
        for paragraph in paragraphs
        if any(fnmatchcase(name, paragraph.files.replace("\\", "/")) for name in names)
    ]
    if not matches:
        return None
    # the first names the library, the others what is linked into it
    return Origin(
        name=matches[0].name,
        licences=tuple(dict.fromkeys(paragraph.licence for paragraph in matches)),
        url=matches[0].url,
        told_by=matches[0].where,
    )


def _by_name(name: str) -> Origin | None:
    if (project := the_facts().project_of(_stem(name))) is not None:
        return Origin(name=project.project, told_by="its file name alone")
    if (rocm := the_libraries().elf_library(name) or the_libraries().dll_library(name)) is not None:
        return Origin(name=next(iter(rocm.documents), rocm.name), told_by="its file name alone")
    return None


def _stem(name: str) -> str:
    """A library's file name without its ending and version."""
    return re.split(r"\.(?:so|dylib|dll)\b", name, maxsplit=1)[0]


def _bare(name: str) -> str:
    """A name without what differs between a library and its project: libXau.so.6 and libxau, libpng16."""
    return _stem(name.lower().rpartition("/")[2].strip()).removeprefix("lib").rstrip("0123456789.-_ ")
