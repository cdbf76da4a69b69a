"""A store in a folder: written whole or not at all, verified when read, never edited."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from filelock import FileLock

from rocbase.errors import FAULTY, InputError, InternalError, OutOfDiskError, as_known
from rocbase.files.atomic import CHUNK, sha256_file, write_atomic
from rocbase.http.address import split
from rocwright.store.model import (
    STORE_SCHEMA,
    DamagedBlobError,
    DigestOf,
    Record,
    RecordEntry,
    digest_of_file,
    finished,
    is_key,
)
from rocwright.store.seal import DamagedRecordError, UnknownRecordError, seal, unseal
from rocwright.store.shared_folder import Listed

FOLDERS = ("blobs", "records", "steps", "tmp", "damaged", "locks")


@dataclass(frozen=True, slots=True)
class StoreLayout:
    """`blobs/ab/<sha256>`, `records/ab/<key>.json`, `steps/ab/<key>.json`, `damaged/`, `tmp/`, `locks/`,
    `builds/`. Raises InternalError for what is no sha256."""

    path: Path

    @property
    def mark(self) -> Path:
        return self.path / "format.json"

    def blob(self, sha256: str) -> Path:
        return self.path / "blobs" / _checked(sha256)[:2] / sha256

    def record(self, key: str) -> Path:
        return self.path / "records" / _checked(key)[:2] / f"{key}.json"

    def step(self, key: str) -> Path:
        return self.path / "steps" / _checked(key)[:2] / f"{key}.json"

    @property
    def builds(self) -> Path:
        """What running builds hold; it is made when it is first asked for."""
        folder = self.path / "builds"
        folder.mkdir(exist_ok=True)
        return folder

    def lock(self, name: str) -> FileLock:
        """A lock between processes; the name may hold letters, digits and dashes."""
        return FileLock(self.path / "locks" / f"{name}.lock")

    def locks(self, prefix: str = "") -> list[str]:
        """The names of locks that somebody asked for, of those that begin so."""
        return [path.stem for path in (self.path / "locks").glob(f"{prefix}*.lock")]


def _checked(name: str) -> str:
    if not is_key(name):
        raise InternalError(
            f"{name!r} is not a sha256",
            cause="a fault of rocwright",
            next_step="report this as a bug of rocwright",
        )
    return name


class LocalStore:
    """The `Store` in a folder of this machine; `StoreLayout` says what lies where in it."""

    shared = ()

    def __init__(self, path: Path) -> None:
        self.path = path
        self.layout = StoreLayout(path)
        self._moved_aside: set[str] = set()
        self._prepare()

    @classmethod
    def at(cls, url: str) -> LocalStore:
        """The store at a `file://` URL."""
        return cls(Path(unquote(split(url).path)))

    @property
    def url(self) -> str:
        return self.path.as_uri()

    @property
    def local(self) -> LocalStore:
        return self

    def __str__(self) -> str:
        return str(self.path)

    def _prepare(self) -> None:
        marker = self.layout.mark
        if not marker.exists():
            with disk_errors(self.path):
                for name in FOLDERS:
                    (self.path / name).mkdir(parents=True, exist_ok=True)
                write_atomic(marker, json.dumps({"schema": STORE_SCHEMA}) + "\n")
            return
        try:
            schema = int(json.loads(marker.read_text())["schema"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InternalError(
                f"{marker} cannot be read as the mark of a store",
                cause=str(error),
                next_step="name another folder in ROCWRIGHT_HOME, or remove this one",
            ) from error
        if schema != STORE_SCHEMA:
            aside = shlex.quote(str(self.path))
            raise InputError(
                f"the store at {self.path} has schema {schema}; this rocwright reads schema {STORE_SCHEMA}",
                cause="another version of rocwright made it",
                next_step=f"use that version, or move the store aside: mv {aside} {aside}.{schema}",
            )

    # files

    def has(self, sha256: str, size: int | None = None) -> bool:
        try:
            actual = self.layout.blob(sha256).stat().st_size
        except FileNotFoundError:
            return False
        return size is None or actual == size

    def put_file(self, path: Path, *, move: bool = False) -> tuple[str, int]:
        with disk_errors(self.path):
            if move and path.stat().st_dev == self.path.stat().st_dev:
                return self._take(path)
            return self._copy(path)

    def take_hashed(self, path: Path, digest: str) -> None:
        """Take a file of this store's own file system that nobody else writes, and whose sha256 is known."""
        with disk_errors(self.path):
            self._take(path, digest)

    def _take(self, path: Path, digest: str = "") -> tuple[str, int]:
        digest, size = digest or sha256_file(path), path.stat().st_size
        with path.open("rb") as file:
            os.fsync(file.fileno())
        self._publish(path, digest)
        return digest, size

    def _copy(self, path: Path) -> tuple[str, int]:
        temporary = self.path / "tmp" / f"{os.getpid()}-{time.monotonic_ns()}"
        hasher = hashlib.sha256()
        try:
            with path.open("rb") as source, temporary.open("wb") as target:
                while chunk := source.read(CHUNK):
                    hasher.update(chunk)
                    target.write(chunk)
                target.flush()
                os.fsync(target.fileno())
                size = target.tell()
            self._publish(temporary, hasher.hexdigest())
        finally:
            temporary.unlink(missing_ok=True)
        return hasher.hexdigest(), size

    def _publish(self, temporary: Path, digest: str) -> None:
        target = self.layout.blob(digest)
        target.parent.mkdir(exist_ok=True)
        if target.exists() and target.stat().st_size == temporary.stat().st_size:
            temporary.unlink()
            os.utime(target)
            return
        temporary.chmod(0o444)
        temporary.replace(target)
        _sync_folder(target.parent)

    def opened(self, sha256: str, digest_of: DigestOf = digest_of_file) -> BufferedReader:
        try:
            file = self.layout.blob(sha256).open("rb")
        except FileNotFoundError:
            raise KeyError(sha256) from None
        except OSError as error:
            raise self._damaged(sha256, str(error)) from error
        try:
            digest = digest_of(file)
        except OSError as error:
            file.close()
            raise self._damaged(sha256, str(error)) from error
        if digest != sha256:
            file.close()
            raise self._damaged(sha256, f"its bytes give {digest[:12]}")
        file.seek(0)
        return file

    def _damaged(self, sha256: str, reason: str) -> DamagedBlobError:
        aside = self.path / "damaged" / f"{sha256}-{time.time_ns()}"
        with contextlib.suppress(FileNotFoundError):
            self.layout.blob(sha256).rename(aside)
        return DamagedBlobError(
            f"the stored file {sha256[:12]} is damaged ({reason})",
            cause="the disk, or something that wrote into the store",
            next_step=f"run the command again: it is made anew (the damaged file lies in {aside})",
            subject=sha256,
        )

    # records and steps

    def record(self, key: str, on_damage: Callable[[str], object] = lambda key: None) -> Record | None:
        try:
            record = self._read(key)
        except UnknownRecordError as error:
            raise InputError(
                f"the record of {key[:12]} has schema {error.schema}, which this rocwright does not know",
                cause="a newer rocwright wrote it into this store",
                next_step="upgrade rocwright, or set ROCWRIGHT_HOME to another folder",
                subject=key,
            ) from error
        if record is None and key in self._moved_aside:
            on_damage(key)
        return record

    def _read(self, key: str) -> Record | None:
        """The record of a key; a damaged one is moved to where nobody reads it. Raises UnknownRecordError."""
        path = self.layout.record(key)
        try:
            return unseal(path.read_bytes(), key)
        except FileNotFoundError:
            return None
        except DamagedRecordError:
            self._moved_aside.add(key)
            with contextlib.suppress(FileNotFoundError):
                path.rename(self.path / "damaged" / f"{key}-{time.time_ns()}.json")
            return None

    def put_record(self, record: Record) -> Record:
        with self.layout.lock(f"record-{record.key}"):
            if (existing := finished(self, record.key)) is not None:
                return existing
            self.write_record(record)
        return record

    def write_record(self, record: Record) -> None:
        """Write a record, whatever is there."""
        with disk_errors(self.path):
            write_atomic(self.layout.record(record.key), seal(record))

    def bring(
        self, key: str, on_bytes: Callable[[int], None] = lambda count: None, *, here: bool = True
    ) -> bool:
        return True

    def step(self, key: str) -> bytes | None:
        try:
            return self.layout.step(key).read_bytes()
        except FileNotFoundError:
            return None

    def put_step(self, key: str, definition: bytes) -> None:
        path = self.layout.step(key)
        if not path.exists() or path.read_bytes() != definition:
            with disk_errors(self.path):
                write_atomic(path, definition)

    # what is kept

    def files(self) -> Iterator[Listed]:
        for path in sorted((self.path / "blobs").glob("??/*")):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                yield Listed(path.name, status.st_size, status.st_mtime)

    def records(self) -> Iterator[RecordEntry]:
        for path in sorted((self.path / "records").glob("??/*.json")):
            if not is_key(path.stem):
                continue
            with contextlib.suppress(FileNotFoundError):
                written = path.stat().st_mtime
                try:
                    record = self._read(path.stem)
                except UnknownRecordError:
                    yield RecordEntry(path.stem, written, None, "newer")
                else:
                    yield RecordEntry(path.stem, written, record, "" if record is not None else "damaged")

    def remove(self, kind: Literal["file", "record"], name: str) -> None:
        path = self.layout.blob(name) if kind == "file" else self.layout.record(name)
        path.unlink(missing_ok=True)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Raise OutOfDiskError for a full disk, DiskError for a faulty one, InputError for a closed folder."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OutOfDiskError(
                f"the disk that holds {path} is full",
                cause="the store could not be written; what was being written has been taken back",
                next_step="free some disk space (rocwright clean --dry-run lists what can be "
                "removed) or set ROCWRIGHT_HOME to a folder on another disk, then run again",
            ) from error
        if error.errno in FAULTY:
            raise as_known(OSError(error.errno, error.strerror, str(path)), "rocwright") from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.ENOTDIR):
            raise InputError(
                f"{path} cannot be written",
                cause=str(error),
                next_step="set ROCWRIGHT_HOME to a folder that you may write to",
            ) from error
        raise
