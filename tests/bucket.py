"""A store in a bucket, in memory and laid out otherwise than a folder: others need the protocol alone."""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from io import BufferedReader
from pathlib import Path

import obstore
from obstore.store import MemoryStore

from rocbase.errors import InputError
from rocbase.files.atomic import CHUNK, sha256_file
from rocbase.files.hashes import Hashes
from rocwright.store.model import DamagedBlobError, Maintenance, Record
from rocwright.store.seal import DamagedRecordError, UnknownRecordError, seal, unseal


class BucketStore:
    """Objects `files/<sha256>`, `made/<key>`, `steps/<key>`; what is read lies in `cache` first."""

    def __init__(self, cache: Path) -> None:
        self.bucket, self.cache = MemoryStore(), cache
        self.held: list[Mapping[str, str]] = []
        self._damaged: set[str] = set()
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        cache.mkdir(parents=True, exist_ok=True)

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

    def verified(self, sha256: str) -> Path:
        path = self.cache / sha256
        try:
            with path.open("wb") as file:
                for chunk in self.chunks(sha256):
                    file.write(chunk)
        except BaseException:
            path.unlink()
            raise
        return path

    def opened(self, sha256: str, hashes: Hashes) -> BufferedReader:
        return self.verified(sha256).open("rb")

    def chunks(self, sha256: str) -> Iterator[bytes]:
        data = self._read(f"files/{sha256}")
        if data is None:
            raise KeyError(sha256)
        yield from (data[at : at + CHUNK] for at in range(0, len(data), CHUNK))
        copy = self.cache / "checked"
        copy.write_bytes(data)
        if sha256_file(copy) != sha256:
            self.remove_blob(sha256)
            raise DamagedBlobError(f"the stored file {sha256[:12]} is damaged", subject=sha256)

    def blobs(self) -> Iterator[tuple[str, int]]:
        yield from ((one["path"].removeprefix("files/"), one["size"]) for one in self._list("files"))

    def remove_blob(self, sha256: str) -> None:
        self._remove(f"files/{sha256}")

    # records

    def record(self, key: str) -> Record | None:
        data = self._read(f"made/{key}")
        try:
            return unseal(data, key) if data is not None else None
        except DamagedRecordError:
            self._damaged.add(key)
            self.forget(key)
            return None
        except UnknownRecordError as error:
            raise InputError(f"the record of {key[:12]} has schema {error.schema}") from error

    def records_of(self, keys: Sequence[str]) -> Mapping[str, Record | None]:
        return {key: self.record(key) for key in keys}

    def was_damaged(self, key: str) -> bool:
        return key in self._damaged

    def put_record(self, record: Record) -> Record:
        with self.lock(record.key):
            kept = self.record(record.key)
            if kept is not None and all(self.has(one.sha256, one.size) for one in kept.outputs):
                return kept
            obstore.put(self.bucket, f"made/{record.key}", seal(record))
        return record

    def forget(self, key: str) -> None:
        self._remove(f"made/{key}")

    def record_keys(self) -> Sequence[str]:
        return [one["path"].removeprefix("made/") for one in self._list("made")]

    def records(self) -> Sequence[Record]:
        unknown = self.unknown()
        found = (self.record(key) for key in self.record_keys() if key not in unknown)
        return [record for record in found if record is not None]

    def unknown(self) -> Sequence[str]:
        return [key for key in self.record_keys() if self._is_unknown(key)]

    def _is_unknown(self, key: str) -> bool:
        try:
            self.record(key)
        except InputError:
            return True
        return False

    # what other machines built

    def bring(self, key: str, on_bytes: Callable[[int], None] = lambda count: None) -> bool:
        return True

    def signers(self, record: Record) -> frozenset[str]:
        return frozenset([""])

    def lend(self, key: str) -> bool:
        return True

    def offered_lock(self, name: str) -> None:
        return None

    # definitions of steps

    def step(self, key: str) -> bytes | None:
        return self._read(f"steps/{key}")

    def put_step(self, key: str, definition: bytes) -> None:
        obstore.put(self.bucket, f"steps/{key}", definition)

    # those who work with it at the same time

    def lock(self, name: str) -> AbstractContextManager[object]:
        return self._locks[name]

    def abandon(self, key: str) -> None:
        pass

    @contextlib.contextmanager
    def holding(self, steps: Mapping[str, str], on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
        self.held.append(steps)
        try:
            yield
        finally:
            self.held.remove(steps)

    def maintenance(self) -> Maintenance:
        raise InputError(
            f"{self} is not cleaned up from here",
            cause="whoever owns the bucket says what of it goes",
            next_step="ask its owner",
        )

    # objects

    def _read(self, name: str) -> bytes | None:
        try:
            return bytes(obstore.get(self.bucket, name).bytes())
        except FileNotFoundError:
            return None

    def _list(self, folder: str) -> list[obstore.ObjectMeta]:
        return sorted(
            (one for some in obstore.list(self.bucket, folder) for one in some), key=lambda one: one["path"]
        )

    def _remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            obstore.delete(self.bucket, name)
