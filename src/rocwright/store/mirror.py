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
from rocwright.store.model import Output, Record, is_key
from rocwright.store.push import make_store, publish_key
from rocwright.store.seal import DamagedRecordError, UnknownRecordError, unseal
from rocwright.store.shared import SharedStore, defines, word_name
from rocwright.store.signed import LARGEST, RefusedError, Word, word_of
from rocwright.store.trust import TrustedKey
from rocwright.store.turns import Turn, turn


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
        for one in self.source.keys:
            publish_key(self.target, one.keyid, one.pem.encode())
        done = Copied()
        with turn(self.target, "push") as held:
            for key in self.source.names("record"):
                held.renew()
                for one, data, word in self.source.envelopes("record", key):
                    try:
                        self._record(key, word_name("record", key, one.keyid), data, word, held, done)
                    except _LeftOutError as reason:
                        done.left_out.append(f"{key[:12]} by {one.name}: {reason}")
            for lock in self.source.names("lock"):
                for one, data, word in self.source.envelopes("lock", lock):
                    done.locks += self._lock(lock, one, data, word)
        return done

    def _record(self, key: str, name: str, data: bytes, word: Word, held: Turn, done: Copied) -> None:
        try:
            record = unseal(word.content.encode(), key)
        except (DamagedRecordError, UnknownRecordError) as error:
            raise _LeftOutError(str(error)) from error
        if not all(is_key(one.sha256) for one in record.outputs):
            raise _LeftOutError("it names no files")
        before = self.target.get(name, LARGEST)
        if before is not None and before != data:
            raise _LeftOutError("another record of that signer lies there already")
        self._files(record, held, done)
        for one, definition, said in self.source.envelopes("step", key):
            if defines(said, key):
                self.target.add(word_name("step", key, one.keyid), definition)
        if before is not None:
            done.there += 1
            return
        self.target.add(name, data)
        # a clean-up may have taken a file that was there before the record that names it was
        self._files(record, held, done)
        done.records += 1

    def _files(self, record: Record, held: Turn, done: Copied) -> None:
        for output in record.outputs:
            if Blobs(self.target).has(output.sha256, output.size):
                continue
            with tempfile.NamedTemporaryFile(dir=self.scratch) as file:
                hasher = hashlib.sha256()
                for chunk in self._chunks(output):
                    hasher.update(chunk)
                    file.write(chunk)
                    self.on_bytes(len(chunk))
                    held.renew()
                if hasher.hexdigest() != output.sha256:
                    raise _LeftOutError(f"{output.filename} has other bytes than its record says")
                file.flush()
                Blobs(self.target).put(
                    Path(file.name), output.sha256, output.size, on_bytes=lambda _: held.renew()
                )
            done.files += 1
            done.size += output.size

    def _chunks(self, output: Output) -> Iterator[bytes]:
        """The bytes of a file, no more than its record says."""
        left = output.size
        try:
            for chunk in self.source.fetch(output, 0):
                left -= len(chunk)
                if left < 0:
                    raise _LeftOutError(f"{output.filename} has more bytes than its record says")
                yield chunk
        except KeyError as error:
            raise _LeftOutError(f"{output.filename} is not there") from error

    def _lock(self, name: str, signer: TrustedKey, data: bytes, word: Word) -> int:
        """Copy a lock, instead of an older one or of what that signer has not signed; how many are new."""
        path = word_name("lock", name, signer.keyid)
        before = self.target.get(path, LARGEST)
        if before is not None:
            with contextlib.suppress(RefusedError):
                if word_of(before, "lock", name, [signer.key]).signed >= word.signed:
                    return 0
        self.target.replace(path, data)
        return 1
