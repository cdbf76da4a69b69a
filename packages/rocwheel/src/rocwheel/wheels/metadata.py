"""What a wheel says of itself: its file name, WHEEL, METADATA and RECORD, read, checked and changed.

Sources: https://packaging.python.org/specifications/ (binary distribution format, recording installed
projects, core metadata, version specifiers); METADATA and WHEEL are written as mail headers are.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise

from packaging.tags import Tag
from packaging.utils import InvalidName, InvalidWheelFilename, canonicalize_name
from packaging.version import InvalidVersion, Version

from rocbase.errors import CheckError, InputError
from rocbase.files.bounds import METADATA_LINES, RECORD_ROWS
from rocwheel.wheels.names import read_tags, read_version, read_wheel_name

RECORD = "RECORD"
SIGNATURES = ("RECORD.jws", "RECORD.p7s")
DIST_INFO = ".dist-info"

_OTHER_HASHES = ("sha384", "sha512", "sha3_256", "sha3_384", "sha3_512")
"""Kinds that RECORD may have and that are not checked: nobody writes them."""

_HEADER = re.compile(rb"([!-9;-~]+):[ \t]*(.*)")
_EMPTY_LINE = re.compile(rb"(?:\A|(?<=\n)|(?<=\r)(?!\n))(?:\r\n|\r|\n)")


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelName:
    """The parts of a wheel's file name, each as it is written there."""

    name: str
    version: str
    build: str
    python: str
    abi: str
    platform: str

    @property
    def file_name(self) -> str:
        parts = (self.name, self.version, self.build, self.python, self.abi, self.platform)
        return "-".join(part for part in parts if part) + ".whl"

    @property
    def tags(self) -> frozenset[Tag]:
        """Each combination of the compressed tags."""
        return read_tags([f"{self.python}-{self.abi}-{self.platform}"])


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRow:
    """A line of RECORD: sha256 in hexadecimal and size in bytes, None where it does not say."""

    path: str
    sha256: str | None = None
    size: int | None = None


class Headers:
    """WHEEL or METADATA: names and values in order, and every byte as it was except what is changed."""

    def __init__(self, data: bytes) -> None:
        # a line of blanks goes on with a header: License: has whole texts, with paragraphs
        end = _EMPTY_LINE.search(data)
        head, self._rest = (data[: end.start()], data[end.start() :]) if end else (data, b"")
        self._text_at = end.end() - end.start() if end else 0
        self._lines = head.splitlines(keepends=True)
        if len(self._lines) > METADATA_LINES:
            raise CheckError(
                f"a file of metadata has more than {METADATA_LINES:,} lines of headers",
                cause="real ones have some thousand: it is damaged, or made to fill the memory",
                next_step="get a fresh copy of the wheel",
            )
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._names: dict[str, str] = {}
        self._find()

    def all(self, name: str) -> list[str]:
        """The values of a header, in order; continued lines joined."""
        return [self._value(begin, end) for begin, end in self._spans(name)]

    def get(self, name: str) -> str:
        """The first value of a header; "" where there is none."""
        return next(iter(self.all(name)), "")

    def names(self) -> list[str]:
        """The headers' names, each once, as they are written and in order."""
        return list(self._names.values())

    @property
    def text(self) -> bytes:
        """What follows the headers."""
        return self._rest[self._text_at :]

    def replaced(self, name: str, values: Iterable[str]) -> Headers:
        """The same with these values for a header, in the place of its first (else behind all others)."""
        spans = self._spans(name)
        position = spans[0][0] if spans else len(self._lines)
        removed = {number for begin, end in spans for number in range(begin, end)}
        line_ending = b"\r\n" if self._lines and self._lines[0].endswith(b"\r\n") else b"\n"
        written = [f"{name}: {value}".encode() + line_ending for value in values]
        lines = [line if line.endswith((b"\n", b"\r")) else line + line_ending for line in self._lines]
        head = [line for number, line in enumerate(lines[:position]) if number not in removed]
        tail = [line for number, line in enumerate(lines[position:], position) if number not in removed]
        return Headers(b"".join([*head, *written, *tail, self._rest]))

    def as_bytes(self) -> bytes:
        return b"".join([*self._lines, self._rest])

    def _find(self) -> None:
        """Note where each header begins and ends, in lines."""
        starts = [number for number, line in enumerate(self._lines) if line[:1] not in (b" ", b"\t")]
        for number, end in pairwise([*starts, len(self._lines)]):
            if match := _HEADER.match(self._lines[number]):
                name = match[1].decode()
                self._names[name.lower()] = name
                self._places.setdefault(name.lower(), []).append((number, end))

    def _spans(self, name: str) -> list[tuple[int, int]]:
        """Return where each header of this name begins and ends, in lines."""
        return self._places.get(name.lower(), [])

    def _value(self, begin: int, end: int) -> str:
        match = _HEADER.match(self._lines[begin])
        assert match
        parts = [match[2], *self._lines[begin + 1 : end]]
        return "\n".join(part.decode(errors="replace").strip() for part in parts)


def parse_name(file_name: str) -> WheelName:
    """The parts of a wheel's file name. Raises InputError for one that pip would not take."""
    try:
        read_wheel_name(file_name)
        parts = file_name.removesuffix(".whl").split("-")
    except (InvalidWheelFilename, InvalidVersion, InvalidName) as error:
        raise InputError(
            f"{file_name} is not a valid wheel filename",
            cause=str(error),
            next_step="rename it to the name it was built with: NAME-VERSION-PYTHON-ABI-PLATFORM.whl",
        ) from error
    name, version, *build, python, abi, platform = parts
    return WheelName(
        name=name, version=version, build="".join(build), python=python, abi=abi, platform=platform
    )


def dist_info_folder(paths: Iterable[str]) -> str:
    """The one *.dist-info folder at the top of a wheel. Raises InputError where there is none, or more."""
    folders = {top for path in paths if (top := path.partition("/")[0]).endswith(DIST_INFO) and "/" in path}
    if len(folders) != 1:
        raise InputError(
            "not a wheel: it has no *.dist-info folder"
            if not folders
            else f"a wheel has one *.dist-info folder, this one has {', '.join(sorted(folders))[:300]}",
            cause="it is another kind of file, or its build was incomplete",
            next_step="give a wheel that pip can install",
        )
    return folders.pop()


def with_local(version: str, label: str) -> str:
    """The version with `label` added to its local part: 2.8+rocm6 and slim give 2.8+rocm6.slim.

    Source: PEP 440, local version identifiers. Raises InputError where that is no version.
    """
    try:
        parsed = read_version(version)
        local = ".".join(part for part in (parsed.local, label) if part)
        return str(Version(f"{parsed.public}+{local}"))
    except InvalidVersion as error:
        raise InputError(
            f"{version!r} with {label!r} is not a valid version",
            cause="a local version may have only letters, digits and dots",
            next_step="give a local version of letters, digits and dots",
        ) from error


def record_bytes(rows: Iterable[RecordRow]) -> bytes:
    """RECORD as a wheel holds it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        coded = "" if row.sha256 is None else f"sha256={_coded(row.sha256)}"
        writer.writerow((row.path, coded, "" if row.size is None else row.size))
    return text.getvalue().encode()


def read_record(data: bytes) -> list[RecordRow]:
    """The lines of RECORD. Raises CheckError where it is damaged or uses a hash weaker than sha256."""
    try:
        # a stream, since the text as one string of wide characters takes four times its bytes
        lines = csv.reader(io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline=""))
        rows = [_row(line) for line in islice(lines, RECORD_ROWS + 1) if line]
        if len(rows) > RECORD_ROWS:
            raise ValueError(f"it has more than {RECORD_ROWS:,} rows")
        return rows
    except (ValueError, csv.Error, binascii.Error) as error:
        raise CheckError(
            "RECORD cannot be read",
            cause=str(error),
            next_step="rewrite it with `rocwheel canonicalize --fix-record`",
        ) from error


def record_contradictions(rows: Iterable[RecordRow], content: Mapping[str, RecordRow]) -> list[str]:
    """What RECORD says that is not so; `content` has the row of each file as it is."""
    listed: set[str] = set()
    problems = []
    for row in rows:
        if row.path in listed:
            problems.append(f"RECORD names {row.path} twice")
        listed.add(row.path)
        real = content.get(row.path)
        if real is None:
            problems.append(f"RECORD names {row.path}, which is missing")
        elif row.sha256 not in (None, real.sha256) or row.size not in (None, real.size):
            problems.append(f"the sha256 or size of {row.path} is not what RECORD says")
    return problems


def record_gaps(rows: Iterable[RecordRow], content: Mapping[str, RecordRow], folder: str) -> list[str]:
    """What RECORD should say and does not; `folder` is the wheel's *.dist-info."""
    free = {f"{folder}/{name}" for name in (RECORD, *SIGNATURES)}
    listed = {row.path: row for row in rows}
    missing = [f"{path} is not in RECORD" for path in sorted(content.keys() - listed.keys() - free)]
    bare = [path for path, row in listed.items() if row.sha256 is None and path not in free]
    return missing + [f"RECORD has no sha256 of {path}" for path in bare]


def name_problems(name: WheelName, folder: str, wheel: Headers, metadata: Headers) -> list[str]:
    """Where file name, *.dist-info, WHEEL and METADATA of a wheel contradict one another."""
    problems = []
    folder_name, _, version = folder.removesuffix(DIST_INFO).rpartition("-")
    for source, this, that in (
        (folder, folder_name, name.name),
        ("METADATA", metadata.get("Name"), name.name),
    ):
        if canonicalize_name(this) != canonicalize_name(that):
            problems.append(f"{source} names {this or 'nothing'}, the file name {that}")
    for source, claimed in ((folder, version), ("METADATA", metadata.get("Version"))):
        if not _same_version(claimed, name.version):
            problems.append(f"{source} has version {claimed or '(none)'}, the file name {name.version}")
    try:
        if differ := read_tags(wheel.all("Tag")) ^ name.tags:
            few = ", ".join(sorted(map(str, differ)))
            problems.append(f"WHEEL and the file name differ in the tags {few}")
    except ValueError as error:
        problems.append(f"WHEEL cannot be compared with the file name: {error}")
    if wheel.get("Root-Is-Purelib").lower() not in ("true", "false"):
        problems.append("WHEEL does not say whether Root-Is-Purelib")
    if not wheel.get("Wheel-Version").startswith("1."):
        problems.append(f"WHEEL has Wheel-Version {wheel.get('Wheel-Version') or '(none)'}; known is 1.0")
    return problems


def moved(path: str, folder: str, version: str) -> str:
    """Where a file lies when the wheel has another version; `folder` is its *.dist-info of now."""
    name = folder.removesuffix(DIST_INFO).rpartition("-")[0]
    top, slash, inner = path.partition("/")
    data = folder.removesuffix(DIST_INFO) + ".data"
    if top in (folder, data) and slash:
        return f"{name}-{version}{DIST_INFO if top == folder else '.data'}/{inner}"
    return path


def _same_version(version: str, file_version: str) -> bool:
    try:
        return read_version(version) == read_version(file_version.replace("_", "-"))
    except InvalidVersion:
        return version == file_version


def _row(line: list[str]) -> RecordRow:
    if len(line) != 3:
        raise ValueError(f"a line has {len(line)} fields: {','.join(line)[:200]}")
    path, coded, size = line
    if not coded:
        return RecordRow(path=path, size=int(size) if size else None)
    kind, _, digest = coded.partition("=")
    if kind in _OTHER_HASHES:
        return RecordRow(path=path, size=int(size) if size else None)
    if kind != "sha256":
        raise ValueError(f"{path} has a hash of the kind {kind[:40]}, which RECORD does not allow")
    raw = base64.b64decode(digest + "=" * (-len(digest) % 4), altchars=b"-_", validate=True)
    return RecordRow(path=path, sha256=raw.hex(), size=int(size) if size else None)


def _coded(sha256: str) -> str:
    return base64.urlsafe_b64encode(bytes.fromhex(sha256)).rstrip(b"=").decode()
