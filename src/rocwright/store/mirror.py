"""Copying what trusted keys signed from one shared store to another: a bucket to a folder that a web server
shows, to a disk that is carried, to a second cloud. Signatures stay what they are."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rocwright.store.blobs import Blobs
from rocwright.store.bucket import Bucket
from rocwright.store.leases import Turn, turn
from rocwright.store.model import Output, Record, is_key
from rocwright.store.push import make_store, publish_key
from rocwright.store.seal import DamagedRecordError, UnknownRecordError, unseal
from rocwright.store.shared import SharedStore, defines, word_name
from rocwright.store.signed import LARGEST, RefusedError, Word, word_of
from rocwright.store.trust import TrustedKey


@dataclass(slots=True, kw_only=True)
class Copied:
    """What a copy did: records and locks that are there now and were not, records that were there already,
    files and bytes that were sent, and what was left out with the reason."""

    records: int = 0
    locks: int = 0
    there: int = 0
    files: int = 0
    size: int = 0
    left_out: list[str] = field(default_factory=list)


class _LeftOutError(ValueError):
    """Why a record is not copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """Copies the records and locks that count in `source` to `target`, with their files, the definitions of
    their steps and the public keys. Nothing there is removed, nor written over but an older lock.

    `scratch` is a folder that holds one file at a time; `on_bytes` is called with what each part of a
    transfer brought.
    """

    source: SharedStore
    target: Bucket
    scratch: Path
    on_bytes: Callable[[int], None] = lambda count: None

    def copy(self, name: str) -> Copied:
        """Copy all of it; `target` is made a store that is called `name`, where it is none.

        Raises InputError where the target cannot be shared or is being cleaned up; NetworkError, where what
        was copied until then is whole.
        """
        make_store(self.target, name)
        for signer in self.source.keys:
            publish_key(self.target, signer.keyid, signer.pem.encode())
        copied = Copied()
        with turn(self.target, "push") as lease:
            for key in self.source.names("record"):
                lease.renew()
                for signer, data, word in self.source.envelopes("record", key):
                    try:
                        self._record(key, word_name("record", key, signer.keyid), data, word, lease, copied)
                    except _LeftOutError as reason:
                        copied.left_out.append(f"{key[:12]} by {signer.name}: {reason}")
            for lock in self.source.names("lock"):
                for signer, data, word in self.source.envelopes("lock", lock):
                    copied.locks += self._lock(lock, signer, data, word)
        return copied

    def _record(self, key: str, name: str, data: bytes, word: Word, lease: Turn, copied: Copied) -> None:
        try:
            record = unseal(word.content.encode(), key)
        except (DamagedRecordError, UnknownRecordError) as error:
            raise _LeftOutError(str(error)) from error
        if not all(is_key(output.sha256) for output in record.outputs):
            raise _LeftOutError("it names no files")
        existing = self.target.get(name, LARGEST)
        if existing is not None and existing != data:
            raise _LeftOutError("another record of that signer lies there already")
        self._files(record, lease, copied)
        for signer, definition, step_word in self.source.envelopes("step", key):
            if defines(step_word, key):
                self.target.add(word_name("step", key, signer.keyid), definition)
        if existing is not None:
            copied.there += 1
            return
        self.target.add(name, data)
        # a clean-up may have taken a file that was there before the record that names it was
        self._files(record, lease, copied)
        copied.records += 1

    def _files(self, record: Record, lease: Turn, copied: Copied) -> None:
        for output in record.outputs:
            if Blobs(self.target).has(output.sha256, output.size):
                continue
            with tempfile.NamedTemporaryFile(dir=self.scratch) as file:
                hasher = hashlib.sha256()
                for chunk in self._chunks(output):
                    hasher.update(chunk)
                    file.write(chunk)
                    self.on_bytes(len(chunk))
                    lease.renew()
                if hasher.hexdigest() != output.sha256:
                    raise _LeftOutError(f"{output.filename} has other bytes than its record says")
                file.flush()
                Blobs(self.target).put(
                    Path(file.name), output.sha256, output.size, on_bytes=lambda _: lease.renew()
                )
            copied.files += 1
            copied.size += output.size

    def _chunks(self, output: Output) -> Iterator[bytes]:
        """The bytes of a file, no more than its record says."""
        remaining = output.size
        try:
            for chunk in self.source.fetch(output, 0):
                remaining -= len(chunk)
                if remaining < 0:
                    raise _LeftOutError(f"{output.filename} has more bytes than its record says")
                yield chunk
        except KeyError as error:
            raise _LeftOutError(f"{output.filename} is not there") from error

    def _lock(self, name: str, signer: TrustedKey, data: bytes, word: Word) -> int:
        """Copy a lock, instead of an older one or of what that signer has not signed; how many are new."""
        path = word_name("lock", name, signer.keyid)
        existing = self.target.get(path, LARGEST)
        if existing is not None:
            with contextlib.suppress(RefusedError):
                if word_of(existing, "lock", name, [signer.key]).signed >= word.signed:
                    return 0
        self.target.replace(path, data)
        return 1
