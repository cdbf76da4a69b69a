"""A store in a folder: written whole or not at all, verified when read, never edited."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from io import BufferedReader
from pathlib import Path
from urllib.parse import unquote

from filelock import FileLock

from rocbase.errors import FAULTY, InputError, InternalError, OutOfDiskError, as_known
from rocbase.files.atomic import CHUNK, sha256_file, write_atomic
from rocbase.files.hashes import Hashes
from rocbase.http.address import split
from rocwright.store import leases
from rocwright.store.layout import FOLDERS, StoreLayout
from rocwright.store.maintenance import LocalMaintenance
from rocwright.store.model import STORE_SCHEMA, DamagedBlobError, Maintenance, Record, is_key
from rocwright.store.seal import DamagedRecordError, UnknownRecordError, seal, unseal


class LocalStore:
    """The `Store` in a folder of this machine; `Layout` says what lies where in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._layout = StoreLayout(path)
        self._moved_aside: set[str] = set()
        self._prepare()

    @classmethod
    def at(cls, url: str) -> LocalStore:
        """The store at a `file://` URL."""
        return cls(Path(unquote(split(url).path)))

    @property
    def url(self) -> str:
        return self.path.as_uri()

    def __str__(self) -> str:
        return str(self.path)

    def _prepare(self) -> None:
        marker = self._layout.mark
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
            actual = self._layout.blob(sha256).stat().st_size
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
        target = self._layout.blob(digest)
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
        return self._layout.blob(sha256)

    def opened(self, sha256: str, hashes: Hashes) -> BufferedReader:
        try:
            file = self._layout.blob(sha256).open("rb")
        except FileNotFoundError:
            raise KeyError(sha256) from None
        except OSError as error:
            raise self._damaged(sha256, str(error)) from error
        try:
            digest = hashes.of(file)
        except OSError as error:
            file.close()
            raise self._damaged(sha256, str(error)) from error
        if digest != sha256:
            file.close()
            raise self._damaged(sha256, f"its bytes give {digest[:12]}")
        return file

    def chunks(self, sha256: str) -> Iterator[bytes]:
        hasher = hashlib.sha256()
        try:
            with self._layout.blob(sha256).open("rb") as file:
                while chunk := file.read(CHUNK):
                    hasher.update(chunk)
                    yield chunk
        except FileNotFoundError:
            raise KeyError(sha256) from None
        if hasher.hexdigest() != sha256:
            raise self._damaged(sha256, f"its bytes give {hasher.hexdigest()[:12]}")

    def _damaged(self, sha256: str, reason: str) -> DamagedBlobError:
        aside = self.path / "damaged" / f"{sha256}-{time.time_ns()}"
        with contextlib.suppress(FileNotFoundError):
            self._layout.blob(sha256).rename(aside)
        return DamagedBlobError(
            f"the stored file {sha256[:12]} is damaged ({reason})",
            cause="the disk, or something that wrote into the store",
            next_step=f"run the command again: it is made anew (the damaged file lies in {aside})",
            subject=sha256,
        )

    # records and steps

    def record(self, key: str) -> Record | None:
        path = self._layout.record(key)
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

    def records_of(self, keys: Sequence[str]) -> Mapping[str, Record | None]:
        return {key: self.record(key) for key in keys}

    def signers(self, record: Record) -> frozenset[str]:
        if record.compiled_by_others():
            return frozenset()
        return frozenset([record.ran_by or (record.origin.keyid if record.origin is not None else "")])

    def move_aside(self, key: str) -> None:
        """Put a damaged record where nobody takes it for one."""
        self._moved_aside.add(key)
        with contextlib.suppress(FileNotFoundError):
            self._layout.record(key).rename(self.path / "damaged" / f"{key}-{time.time_ns()}.json")

    def was_damaged(self, key: str) -> bool:
        return key in self._moved_aside

    def put_record(self, record: Record) -> Record:
        with self.lock(f"record-{record.key}"):
            existing = self.record(record.key)
            if existing is not None and all(
                self.has(output.sha256, output.size) for output in existing.outputs
            ):
                return existing
            self.write_record(record)
        return record

    def write_record(self, record: Record) -> None:
        """Write a record, whatever is there."""
        with disk_errors(self.path):
            write_atomic(self._layout.record(record.key), seal(record))

    def bring(self, key: str, on_bytes: Callable[[int], None] = lambda count: None) -> bool:
        return True

    def lend(self, key: str) -> bool:
        return True

    def offered_lock(self, name: str) -> None:
        return None

    def step(self, key: str) -> bytes | None:
        try:
            return self._layout.step(key).read_bytes()
        except FileNotFoundError:
            return None

    def put_step(self, key: str, definition: bytes) -> None:
        path = self._layout.step(key)
        if not path.exists() or path.read_bytes() != definition:
            with disk_errors(self.path):
                write_atomic(path, definition)

    def forget(self, key: str) -> None:
        self._layout.record(key).unlink(missing_ok=True)

    def record_keys(self) -> list[str]:
        names = (path.stem for path in sorted((self.path / "records").glob("??/*.json")))
        return [name for name in names if is_key(name)]

    def records(self) -> Sequence[Record]:
        return [record for key in self.record_keys() if (record := self._known_record(key)) is not None]

    def unknown(self) -> list[str]:
        unreadable = []
        for key in self.record_keys():
            try:
                self.record(key)
            except InputError:
                unreadable.append(key)
        return unreadable

    def _known_record(self, key: str) -> Record | None:
        with contextlib.suppress(InputError):
            return self.record(key)
        return None

    def blobs(self) -> Iterator[tuple[str, int]]:
        for path in sorted((self.path / "blobs").glob("??/*")):
            yield path.name, path.stat().st_size

    def remove_blob(self, sha256: str) -> None:
        self._layout.blob(sha256).unlink(missing_ok=True)

    # those who work with it at the same time

    def lock(self, name: str) -> FileLock:
        return self._layout.lock(name)

    def abandon(self, key: str) -> None:
        """Its lock went with its process."""

    def holding(
        self, steps: Mapping[str, str], on_wait: Callable[[], None] = lambda: None
    ) -> AbstractContextManager[None]:
        return leases.holding(self._layout, steps, on_wait)

    def maintenance(self) -> Maintenance:
        return LocalMaintenance(self._layout)


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
                "removed), then run again",
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
