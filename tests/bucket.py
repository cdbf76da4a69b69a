"""A store in a bucket, in memory and laid out otherwise than a folder: others need the protocol alone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Literal

import obstore
from obstore.store import MemoryStore

from rocbase.errors import InputError
from rocbase.files.atomic import sha256_file
from rocwright.store.model import DamagedBlobError, DigestOf, Record, RecordEntry, digest_of_file, finished
from rocwright.store.seal import DamagedRecordError, UnknownRecordError, seal, unseal
from rocwright.store.shared_folder import Listed


class BucketStore:
    """Objects `files/<sha256>`, `made/<key>`, `steps/<key>`; what is read lies in `path` first."""

    shared = ()

    def __init__(self, path: Path) -> None:
        self.bucket, self.path = MemoryStore(), path
        self._damaged: set[str] = set()
        self._lock = threading.Lock()
        path.mkdir(parents=True, exist_ok=True)

    @property
    def local(self) -> BucketStore:
        return self

    @property
    def url(self) -> str:
        return "memory://bucket"

    def __str__(self) -> str:
        return self.url

    # files

    def put_file(self, path: Path, *, move: bool = False) -> tuple[str, int]:
        sha256, size = sha256_file(path), path.stat().st_size
        if not self.has(sha256, size):
            obstore.put(self.bucket, f"files/{sha256}", path)
        if move:
            path.unlink()
        return sha256, size

    def has(self, sha256: str, size: int | None = None) -> bool:
        try:
            found = obstore.head(self.bucket, f"files/{sha256}")["size"]
        except FileNotFoundError:
            return False
        return size is None or found == size

    def opened(self, sha256: str, digest_of: DigestOf = digest_of_file) -> BufferedReader:
        data = self._read(f"files/{sha256}")
        if data is None:
            raise KeyError(sha256)
        path = self.path / sha256
        path.write_bytes(data)
        file = path.open("rb")
        if digest_of(file) != sha256:
            file.close()
            self.remove("file", sha256)
            raise DamagedBlobError(f"the stored file {sha256[:12]} is damaged", subject=sha256)
        file.seek(0)
        return file

    # records

    def record(self, key: str, on_damage: Callable[[str], object] = lambda key: None) -> Record | None:
        try:
            record = self._record(key)
        except UnknownRecordError as error:
            raise InputError(f"the record of {key[:12]} has schema {error.schema}") from error
        if key in self._damaged:
            on_damage(key)
        return record

    def _record(self, key: str) -> Record | None:
        data = self._read(f"made/{key}")
        try:
            return unseal(data, key) if data is not None else None
        except DamagedRecordError:
            self._damaged.add(key)
            self.remove("record", key)
            return None

    def put_record(self, record: Record) -> Record:
        with self._lock:
            if (existing := finished(self, record.key)) is not None:
                return existing
            obstore.put(self.bucket, f"made/{record.key}", seal(record))
        return record

    def bring(
        self, key: str, on_bytes: Callable[[int], None] = lambda count: None, *, here: bool = True
    ) -> bool:
        return True

    # definitions of steps

    def step(self, key: str) -> bytes | None:
        return self._read(f"steps/{key}")

    def put_step(self, key: str, definition: bytes) -> None:
        obstore.put(self.bucket, f"steps/{key}", definition)

    # what is kept

    def files(self) -> Iterator[Listed]:
        return self._list("files")

    def records(self) -> Iterator[RecordEntry]:
        for name, _, written in [*self._list("made")]:
            try:
                record = self._record(name)
            except UnknownRecordError:
                yield RecordEntry(name, written, None, "newer")
            else:
                yield RecordEntry(name, written, record, "" if record else "damaged")

    def remove(self, kind: Literal["file", "record"], name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            obstore.delete(self.bucket, f"{'files' if kind == 'file' else 'made'}/{name}")

    # objects

    def _read(self, name: str) -> bytes | None:
        try:
            return bytes(obstore.get(self.bucket, name).bytes())
        except FileNotFoundError:
            return None

    def _list(self, folder: str) -> Iterator[Listed]:
        for some in obstore.list(self.bucket, folder):
            for one in sorted(some, key=lambda one: one["path"]):
                name = one["path"].removeprefix(f"{folder}/")
                yield Listed(name, one["size"], one["last_modified"].timestamp())
