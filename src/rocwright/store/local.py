"""A store in a folder: written whole or not at all, verified when read, never edited."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path

from filelock import FileLock

from rocwright.errors import InputError, InternalError, OutOfDiskError
from rocwright.files.atomic import CHUNK, sha256_file, write_atomic
from rocwright.files.hashes import Hashes
from rocwright.store.model import STORE_SCHEMA, DamagedBlobError, Record
from rocwright.store.seal import DamagedRecordError, UnknownRecordError, seal, unseal

_HEX = re.compile(r"[0-9a-f]{64}")


class LocalStore:
    """Layout: `blobs/ab/<sha256>`, `records/ab/<key>.json`, `steps/ab/<key>.json`, `damaged/`, `tmp/`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._moved_aside: set[str] = set()
        self._prepare()

    @property
    def url(self) -> str:
        return self.path.as_uri()

    def _prepare(self) -> None:
        marker = self.path / "format.json"
        if not marker.exists():
            with _disk_errors(self.path):
                for name in ("blobs", "records", "steps", "tmp", "damaged", "locks"):
                    (self.path / name).mkdir(parents=True, exist_ok=True)
                self._mark()
            return
        try:
            schema = int(json.loads(marker.read_text())["schema"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InternalError(
                f"{marker} cannot be read as the mark of a store",
                cause=str(error),
                next_step="name another folder in ROCWRIGHT_HOME, or remove this one",
            ) from error
        if schema > STORE_SCHEMA:
            raise InputError(
                f"the store at {self.path} has schema {schema}; this rocwright knows up to {STORE_SCHEMA}",
                cause="a newer rocwright made it",
                next_step="upgrade rocwright, or set ROCWRIGHT_HOME to another folder",
            )
        if schema < STORE_SCHEMA:
            from rocwright.store.migrate import seal_records

            with self.lock("migrate"), _disk_errors(self.path):
                if int(json.loads(marker.read_text())["schema"]) < STORE_SCHEMA:
                    seal_records(self)
                    self._mark()

    def _mark(self) -> None:
        write_atomic(self.path / "format.json", json.dumps({"schema": STORE_SCHEMA}) + "\n")

    # files

    def _blob(self, sha256: str) -> Path:
        return self.path / f"blobs/{_checked(sha256)[:2]}/{sha256}"

    def has(self, sha256: str, size: int | None = None) -> bool:
        try:
            found = self._blob(sha256).stat().st_size
        except FileNotFoundError:
            return False
        return size is None or found == size

    def put_file(self, path: Path, *, move: bool = False) -> tuple[str, int]:
        with _disk_errors(self.path):
            if move and path.stat().st_dev == self.path.stat().st_dev:
                return self._take(path)
            return self._copy(path)

    def _take(self, path: Path) -> tuple[str, int]:
        digest, size = sha256_file(path), path.stat().st_size
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
        target = self._blob(digest)
        target.parent.mkdir(exist_ok=True)
        if target.exists() and target.stat().st_size == temporary.stat().st_size:
            temporary.unlink()
            os.utime(target)
            return
        temporary.chmod(0o444)
        temporary.replace(target)
        _sync_folder(target.parent)

    def verified(self, sha256: str) -> Path:
        self.opened(sha256, Hashes()).close()
        return self._blob(sha256)

    def opened(self, sha256: str, hashes: Hashes) -> BufferedReader:
        """A file of the store, open; what `hashes` has read of it is not read again.

        Raises KeyError where it is not here, DamagedBlobError.
        """
        try:
            file = self._blob(sha256).open("rb")
        except FileNotFoundError:
            raise KeyError(sha256) from None
        except OSError as error:
            raise self._damaged(sha256, str(error)) from error
        try:
            found = hashes.of(file)
        except OSError as error:
            file.close()
            raise self._damaged(sha256, str(error)) from error
        if found != sha256:
            file.close()
            raise self._damaged(sha256, f"its bytes give {found[:12]}")
        return file

    def chunks(self, sha256: str) -> Iterator[bytes]:
        hasher = hashlib.sha256()
        try:
            with self._blob(sha256).open("rb") as file:
                while chunk := file.read(CHUNK):
                    hasher.update(chunk)
                    yield chunk
        except FileNotFoundError:
            raise KeyError(sha256) from None
        if hasher.hexdigest() != sha256:
            raise self._damaged(sha256, f"its bytes give {hasher.hexdigest()[:12]}")

    def _damaged(self, sha256: str, why: str) -> DamagedBlobError:
        aside = self.path / "damaged" / f"{sha256}-{time.time_ns()}"
        with contextlib.suppress(FileNotFoundError):
            self._blob(sha256).rename(aside)
        return DamagedBlobError(
            f"the stored file {sha256[:12]} is damaged ({why})",
            cause="the disk, or something that wrote into the store",
            next_step=f"run the command again: it is made anew (the damaged file lies in {aside})",
            subject=sha256,
        )

    # records and steps

    def _record(self, key: str) -> Path:
        return self.path / f"records/{_checked(key)[:2]}/{key}.json"

    def _step(self, key: str) -> Path:
        return self.path / "steps" / _checked(key)[:2] / f"{key}.json"

    def record(self, key: str) -> Record | None:
        path = self._record(key)
        try:
            return unseal(path.read_bytes(), key)
        except FileNotFoundError:
            return None
        except DamagedRecordError:
            self.move_aside(key)
            return None
        except UnknownRecordError as error:
            raise InputError(
                f"the record of {key[:12]} has schema {error.schema}, which this rocwright does not know",
                cause="a newer rocwright wrote it into this store",
                next_step="upgrade rocwright, or set ROCWRIGHT_HOME to another folder",
                subject=key,
            ) from error

    def move_aside(self, key: str) -> None:
        """Put a damaged record where nobody takes it for one."""
        self._moved_aside.add(key)
        with contextlib.suppress(FileNotFoundError):
            self._record(key).rename(self.path / "damaged" / f"{key}-{time.time_ns()}.json")

    def was_damaged(self, key: str) -> bool:
        return key in self._moved_aside

    def put_record(self, record: Record) -> Record:
        with self.lock(f"record-{record.key}"):
            kept = self.record(record.key)
            if kept is not None and all(self.has(output.sha256, output.size) for output in kept.outputs):
                return kept
            self.write_record(record)
        return record

    def write_record(self, record: Record) -> None:
        """Write a record, whatever is there."""
        with _disk_errors(self.path):
            write_atomic(self._record(record.key), seal(record))

    def step(self, key: str) -> bytes | None:
        try:
            return self._step(key).read_bytes()
        except FileNotFoundError:
            return None

    def put_step(self, key: str, definition: bytes) -> None:
        path = self._step(key)
        if not path.exists() or path.read_bytes() != definition:
            with _disk_errors(self.path):
                write_atomic(path, definition)

    def forget(self, key: str) -> None:
        self._record(key).unlink(missing_ok=True)

    def record_keys(self) -> list[str]:
        """The keys of all records, also of those that cannot be read."""
        names = (path.stem for path in sorted((self.path / "records").glob("??/*.json")))
        return [name for name in names if is_key(name)]

    def records(self) -> Sequence[Record]:
        return [record for key in self.record_keys() if (record := self._known(key)) is not None]

    def unknown(self) -> list[str]:
        """The keys of records that a newer rocwright wrote: nobody here knows which files they need."""
        found = []
        for key in self.record_keys():
            try:
                self.record(key)
            except InputError:
                found.append(key)
        return found

    def _known(self, key: str) -> Record | None:
        with contextlib.suppress(InputError):
            return self.record(key)
        return None

    def record_bytes(self, key: str) -> bytes:
        """The file of a record, unchecked. Raises FileNotFoundError."""
        return self._record(key).read_bytes()

    def blobs(self) -> Iterator[tuple[str, int]]:
        """Every file kept: its sha256 and size in bytes."""
        for path in sorted((self.path / "blobs").glob("??/*")):
            yield path.name, path.stat().st_size

    def since(self, sha256: str) -> float:
        """When a file was last put here, in seconds since 1970; 0 where it is gone."""
        with contextlib.suppress(FileNotFoundError):
            return self._blob(sha256).stat().st_mtime
        return 0

    def remove_blob(self, sha256: str) -> None:
        """Drop a file that no record needs."""
        self._blob(sha256).unlink(missing_ok=True)

    def lock(self, name: str) -> FileLock:
        """A lock between processes; the name may hold letters, digits and dashes."""
        return FileLock(self.path / "locks" / f"{name}.lock")


def is_key(name: str) -> bool:
    """Whether a name is a sha256 in hexadecimal."""
    return _HEX.fullmatch(name) is not None


def _checked(name: str) -> str:
    if not is_key(name):
        raise InternalError(f"{name!r} is not a sha256", next_step="report this as a fault of rocwright")
    return name


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OutOfDiskError(
                f"the disk that holds {path} is full",
                cause="the store could not be written; what was being written has been taken back",
                next_step="free some room (rocwright clean --dry-run shows what can go), then run again",
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR):
            raise InputError(
                f"{path} cannot be written",
                cause=str(error),
                next_step="set ROCWRIGHT_HOME to a folder that you may write to",
            ) from error
        raise
