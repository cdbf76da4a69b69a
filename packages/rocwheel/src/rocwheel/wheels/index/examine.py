"""One wheel of a folder: its hash, what its METADATA says, and for which GPUs it holds code."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from io import BufferedReader
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name
from packaging.version import InvalidVersion

from rocbase.errors import CheckError, ExplainedError
from rocbase.files.bounds import METADATA, WHEELS, check_text
from rocwheel.wheels import zips
from rocwheel.wheels.choose import ANY_GPU
from rocwheel.wheels.devicecode.fatbin import check_name, fat_binary, may_hold_code
from rocwheel.wheels.devicecode.generic import covers
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel.wheels.index.model import FileFingerprint, Problem, Span, Wheel
from rocwheel.wheels.members import HEAD
from rocwheel.wheels.names import read_version, read_wheel_name
from rocwheel.wheels.source import Budget, ByteSource, MemorySource

IN_MEMORY = 4 * 1024**2
"""Wheels of at most so many bytes are read at once."""

_METADATA = ".dist-info/METADATA"
_FILENAME = re.compile(r"[A-Za-z0-9._+!~-]{1,250}\.whl", re.ASCII)
_FIELD = re.compile(r"^(Name|Version|Requires-Python):[ \t]*(.*?)[ \t]*$", re.MULTILINE | re.IGNORECASE)


def examine(
    folder: Path,
    fingerprint: FileFingerprint,
    *,
    by_gpu: bool = True,
    stopped: Callable[[], bool] = lambda: False,
) -> Wheel | Problem:
    """Read one file; without `by_gpu` its GPU code is not looked at. Never raises for a fault of the file.

    Once `stopped` says so, nobody wants the answer any more and reading ends.
    """
    try:
        return _examine(folder, fingerprint, by_gpu, stopped)
    except ExplainedError as error:
        return Problem(fingerprint.path, f"{error.message}; {error.next_step}")
    except OSError as error:
        return Problem(fingerprint.path, f"it cannot be read: {error.strerror or error}")
    except Exception as error:  # one file that nobody foresaw must not keep the others out
        return Problem(
            fingerprint.path, f"a fault of rocwheel: {type(error).__name__}: {error}; please report it"
        )


def open_as_seen(folder: Path, fingerprint: FileFingerprint) -> BufferedReader:
    """The file, provided that it is still the one that was seen, and no link. Raises CheckError, OSError."""
    descriptor = os.open(
        folder / fingerprint.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    )
    file = os.fdopen(descriptor, "rb")
    try:
        _check_unchanged(file, fingerprint)
    except BaseException:
        file.close()
        raise
    return file


def metadata(folder: Path, wheel: Wheel) -> bytes:
    """The METADATA of a wheel that was examined. Raises CheckError where it is another by now, OSError."""
    span = wheel.metadata
    with open_as_seen(folder, wheel.seen) as file:
        data = os.pread(file.fileno(), span.packed, span.offset)
    if span.method == zips.DEFLATED:
        try:
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, METADATA)
        except zlib.error:
            data = b""
    if hashlib.sha256(data).hexdigest() != wheel.metadata_sha256:
        raise _changed(wheel.seen.path)
    return data


def wheel_name(filename: str) -> tuple[str, str]:
    """Project and version that a wheel's name tells, both normalised. Raises CheckError."""
    if not _FILENAME.fullmatch(filename):
        raise _misnamed(filename, "only letters, digits and . _ + ! ~ - are allowed")
    try:
        project, version, _, _ = read_wheel_name(filename)
    except (InvalidWheelFilename, InvalidVersion) as error:
        raise _misnamed(filename, str(error)) from error
    return str(project), str(version)


def _misnamed(filename: str, reason: str) -> CheckError:
    return CheckError(
        f"its name is not a valid wheel filename: {reason}",
        cause="it was renamed, or is not a wheel",
        next_step="rename it to NAME-VERSION-PYTHON-ABI-PLATFORM.whl, or move it away",
        subject=filename,
    )


def _examine(folder: Path, fingerprint: FileFingerprint, by_gpu: bool, stopped: Callable[[], bool]) -> Wheel:
    check_text(fingerprint.path, fingerprint.size, WHEELS.size)
    project, version = wheel_name(fingerprint.path.rpartition("/")[2])
    with open_as_seen(folder, fingerprint) as file:
        archive = _at_hand(file, fingerprint)
        members = zips.zip_members(archive)
        member = _metadata(members, project, version)
        text = member.open(archive).read_at(0, member.size)
        targets = _targets(archive, members) if by_gpu else None
        # last: a file that is no wheel may have any size
        digest = _sha256(archive, fingerprint, stopped)
        _check_unchanged(file, fingerprint)
    fields = _fields(text)
    _agree(fields, project, version)
    return Wheel(
        seen=fingerprint,
        sha256=digest,
        project=project,
        version=version,
        requires_python=fields.get("requires-python", ""),
        metadata_sha256=hashlib.sha256(text).hexdigest(),
        metadata=Span(member.offset, member.packed_size, member.method),
        targets=targets,
    )


def _sha256(archive: ByteSource, fingerprint: FileFingerprint, stopped: Callable[[], bool]) -> str:
    digest = hashlib.sha256()
    for chunk in archive.chunks(0, fingerprint.size):
        if stopped():
            raise _changed(fingerprint.path)
        digest.update(chunk)
    return digest.hexdigest()


class _Opened(ByteSource):
    """A file that is open already."""

    def __init__(self, file: BufferedReader, fingerprint: FileFingerprint) -> None:
        super().__init__(
            fingerprint.size, Budget.for_file(fingerprint.size, fingerprint.path), fingerprint.path
        )
        self._descriptor = file.fileno()

    def _get(self, offset: int, count: int) -> bytes:
        return os.pread(self._descriptor, count, offset)


def _at_hand(file: BufferedReader, fingerprint: FileFingerprint) -> ByteSource:
    """The file, in memory where it is small: many short reads of the disk take longer."""
    return (
        MemorySource(file.read(fingerprint.size), subject=fingerprint.path)
        if fingerprint.size <= IN_MEMORY
        else _Opened(file, fingerprint)
    )


def _check_unchanged(file: BufferedReader, fingerprint: FileFingerprint) -> None:
    status = os.fstat(file.fileno())
    current = (status.st_size, status.st_mtime_ns, status.st_ino)
    if not stat.S_ISREG(status.st_mode) or current != (
        fingerprint.size,
        fingerprint.mtime_ns,
        fingerprint.inode,
    ):
        raise _changed(fingerprint.path)


def _changed(path: str) -> CheckError:
    return CheckError(
        "it changed while it was being read",
        cause="another program is writing it",
        next_step="run the command again once the file is complete",
        subject=path,
    )


def _metadata(members: Sequence[zips.ZipMember], project: str, version: str) -> zips.ZipMember:
    matches = [
        member for member in members if member.path.endswith(_METADATA) and member.path.count("/") == 1
    ]
    if len(matches) != 1:
        raise _unfit(f"it is not a wheel: it has {'several' if matches else 'no'} METADATA files")
    name, _, declared_version = matches[0].path.removesuffix(_METADATA).partition("-")
    if canonicalize_name(name) != project or _version(declared_version) != version:
        raise _unfit(f"its folder {matches[0].path[:200]!r} belongs to another project or version")
    check_text(matches[0].path, matches[0].size)
    return matches[0]


def _unfit(problem: str) -> CheckError:
    return CheckError(
        problem,
        cause="the file was renamed, damaged, or built wrongly",
        next_step="replace it with a fresh copy, or move it away",
    )


def _targets(archive: ByteSource, members: Sequence[zips.ZipMember]) -> tuple[str, ...] | None:
    """The targets of a wheel's code objects, with what generic ones cover; None where it holds none.

    Names that no table of ours knows are left out: they become folders. Of code that cannot be read no target
    is known: a wheel with such code alone has none of them.
    """
    targets: set[str] = set()
    unread = False
    for member in members:
        if not may_hold_code(member.head(archive, HEAD)):
            check_name(member.path)
        else:
            binary = fat_binary(member.open(archive))
            if binary is not None:
                targets |= {binary.lone.target} if binary.lone else set()
                targets |= {code.target for bundle in binary.all_bundles for code in bundle.code}
                targets |= {piece.code.target for piece in binary.embedded if piece.code}
                targets |= {packed.target for packed in binary.archive.code} if binary.archive else set()
                unread |= bool(binary.unread)
    targets |= {name for target in targets for name in covers(target)}
    return tuple(sorted(targets & {*machines().values(), ANY_GPU})) if targets or unread else None


def _fields(text: bytes) -> dict[str, str]:
    """The headers that an index needs; what follows the first empty line is the description."""
    header = re.split(rb"\r?\n\r?\n", text, maxsplit=1)[0].decode("utf-8", "replace").replace("\r\n", "\n")
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(header):
        fields.setdefault(name.lower(), "".join(sign for sign in value if sign.isprintable()))
    return fields


def _agree(fields: dict[str, str], project: str, version: str) -> None:
    name, declared_version = fields.get("name", ""), fields.get("version", "")
    if canonicalize_name(name) != project or _version(declared_version) != version:
        raise _unfit(f"its METADATA names {name[:100]!r} {declared_version[:100]!r}, unlike its file name")


@lru_cache(maxsize=4096)
def _version(text: str) -> str:
    try:
        return str(read_version(text))
    except InvalidVersion:
        return ""
