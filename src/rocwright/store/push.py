"""Puts what was built here, or is in another shared store, into one: files first, then signed records."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rocbase.errors import InputError
from rocwright.store.blobs import Blobs, Damage
from rocwright.store.bucket import Bucket
from rocwright.store.leases import Turn, turn
from rocwright.store.model import Output, Record, Store, finished, is_key, verified
from rocwright.store.seal import DamagedRecordError, UnknownRecordError, seal, unseal
from rocwright.store.shared import FORMAT, KEYS, SCHEMA, SharedStore, defines, word_name
from rocwright.store.signed import LARGEST, RefusedError, Word, envelope_of, word_of
from rocwright.store.signing.keys import fingerprint, key_of, pem_of
from rocwright.store.trust import TrustedKey

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner, SSlibKey

# Bytes of the list of keys.
MOST_KEYS = 256 * 1024


@dataclass(slots=True, kw_only=True)
class Sent:
    """What a push or a copy did: records and locks that are there now and were not, records that were there
    already, files and bytes that were sent, what was left out with the reason, and the key's fingerprint."""

    records: int = 0
    locks: int = 0
    there: int = 0
    files: int = 0
    size: int = 0
    left_out: list[str] = field(default_factory=list)
    fingerprint: str = ""


class LeftOutError(ValueError):
    """Why a record is not sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sending:
    """Puts files and what names them into a bucket while a lease is held; `path_of` has a file here. A file
    that `damage` says was found damaged there is put anew."""

    bucket: Bucket
    lease: Turn
    sent: Sent
    path_of: Callable[[Output], AbstractContextManager[Path]]
    on_bytes: Callable[[int], None] = lambda size: None
    damage: Damage | None = None

    def record(self, outputs: Iterable[Output], words: Iterable[tuple[str, bytes]]) -> None:
        """Put files, then the words of signers that are not there, by their names: the last is a record."""
        self.files(outputs)
        if [self.bucket.add(name, envelope) for name, envelope in words][-1]:
            # a clean-up may have taken a file that was there before the record that names it was
            self.files(outputs)
            self.sent.records += 1
        else:
            self.sent.there += 1

    def files(self, outputs: Iterable[Output]) -> None:
        """Put the files that are not there."""
        for output in outputs:
            damaged = self.damage is not None and self.damage.has(self.bucket, output.sha256)
            if not damaged and Blobs(self.bucket).has(output.sha256, output.size):
                continue
            with self.path_of(output) as path:
                self.sent.size += Blobs(self.bucket).put(
                    path, output.sha256, output.size, anew=damaged, on_bytes=self._count
                )
            self.sent.files += 1
            if self.damage is not None and damaged:
                self.damage.mended(self.bucket, output.sha256)

    def _count(self, size: int) -> None:
        self.lease.renew()
        self.on_bytes(size)


@dataclass(frozen=True, slots=True)
class Pusher:
    """Sends to a bucket in the name of a key. `on_bytes` is called with the size of each file sent, of a
    large one with that of each part. What `damage` says was found damaged there is put anew."""

    store: Store
    bucket: Bucket
    signer: CryptoSigner
    on_bytes: Callable[[int], None] = lambda size: None
    damage: Damage | None = None

    def open(self, name: str) -> None:
        """Make the bucket a store that is called so, if it is none, and add our key to its list.

        Raises InputError where it cannot be shared, or is of a newer rocwright.
        """
        make_store(self.bucket, name)
        publish_key(self.bucket, self.signer.public_key.keyid, pem_of(self.signer))

    def records(self, keys: Iterable[str]) -> Sent:
        """Push the records of keys, with their files and the definitions of their steps.

        Raises InputError where somebody cleans up there.
        """
        sent = Sent(fingerprint=fingerprint(pem_of(self.signer)))
        with turn(self.bucket, "push") as lease:
            sending = _Sending(
                bucket=self.bucket,
                lease=lease,
                sent=sent,
                path_of=lambda output: nullcontext(verified(self.store, output.sha256)),
                on_bytes=self.on_bytes,
                damage=self.damage,
            )
            for key in dict.fromkeys(keys):
                lease.renew()
                record = finished(self.store, key)
                if record is None:
                    continue
                try:
                    self._record(record, sending)
                except LeftOutError as reason:
                    sent.left_out.append(f"{record.step}: {reason}")
        return sent

    def _record(self, record: Record, sending: _Sending) -> None:
        if record.origin is not None:
            raise LeftOutError(f"built by {record.origin.by}, who signs it")
        keyid = self.signer.public_key.keyid
        name = word_name("record", record.key, keyid)
        existing = self.bucket.get(name, LARGEST)
        if existing is not None:
            stored = self._own_record(existing, record.key)
            if stored is None:
                raise LeftOutError(f"a record that is not ours lies there under our name: {name}")
            if not stored.gave_same(record):
                raise LeftOutError(
                    "other bytes were pushed before: it is not reproducible here, and the first stand"
                )
            # of those that were packed otherwise before, nothing is here
            sending.files([output for output in stored.outputs if self.store.has(output.sha256, output.size)])
            sending.sent.there += 1
            return
        words = [(name, envelope_of("record", record.key, seal(record).decode(), self.signer))]
        if (definition := self.store.step(record.key)) is not None:
            envelope = envelope_of("step", record.key, definition.decode(), self.signer)
            words.insert(0, (word_name("step", record.key, keyid), envelope))
        sending.record(record.outputs, words)

    def _own_record(self, data: bytes, key: str) -> Record | None:
        try:
            return unseal(word_of(data, "record", key, [self.signer.public_key]).content.encode(), key)
        except (RefusedError, DamagedRecordError, UnknownRecordError):
            return None

    def lock(self, digest: str, text: str) -> bool:
        """Publish a lock for a request by its digest, instead of an older one of ours. Whether it is new."""
        name = word_name("lock", digest, self.signer.public_key.keyid)
        existing = self.bucket.get(name, LARGEST)
        if existing is not None:
            try:
                if word_of(existing, "lock", digest, [self.signer.public_key]).content == text:
                    return False
            except RefusedError:
                pass
        self.bucket.replace(name, envelope_of("lock", digest, text, self.signer))
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """Copies the records and locks that count in `source` to `target`, with their files, the definitions of
    their steps and the public keys: a bucket to a folder that a web server shows, to a disk that is carried,
    to a second cloud. Signatures stay what they are. Nothing there is removed, nor written over but an older
    lock.

    `scratch` is a folder that holds one file at a time; `on_bytes` is called with what each part of a
    transfer brought.
    """

    source: SharedStore
    target: Bucket
    scratch: Path
    on_bytes: Callable[[int], None] = lambda count: None

    def copy(self, name: str) -> Sent:
        """Copy all of it; `target` is made a store that is called `name`, where it is none.

        Raises InputError where the target cannot be shared or is being cleaned up; NetworkError, where what
        was copied until then is whole.
        """
        make_store(self.target, name)
        for signer in self.source.keys:
            publish_key(self.target, signer.keyid, signer.pem.encode())
        sent = Sent()
        with turn(self.target, "push") as lease:
            sending = _Sending(
                bucket=self.target, lease=lease, sent=sent, path_of=partial(self._fetched, lease)
            )
            for key in self.source.names("record"):
                lease.renew()
                for signer, data, word in self.source.envelopes("record", key):
                    try:
                        self._record(key, word_name("record", key, signer.keyid), data, word, sending)
                    except LeftOutError as reason:
                        sent.left_out.append(f"{key[:12]} by {signer.name}: {reason}")
            for lock in self.source.names("lock"):
                for signer, data, word in self.source.envelopes("lock", lock):
                    sent.locks += self._lock(lock, signer, data, word)
        return sent

    def _record(self, key: str, name: str, data: bytes, word: Word, sending: _Sending) -> None:
        try:
            record = unseal(word.content.encode(), key)
        except (DamagedRecordError, UnknownRecordError) as error:
            raise LeftOutError(str(error)) from error
        if not all(is_key(output.sha256) for output in record.outputs):
            raise LeftOutError("it names no files")
        existing = self.target.get(name, LARGEST)
        if existing is not None and existing != data:
            raise LeftOutError("another record of that signer lies there already")
        words = [
            (word_name("step", key, signer.keyid), definition)
            for signer, definition, step_word in self.source.envelopes("step", key)
            if defines(step_word, key)
        ]
        sending.record(record.outputs, [*words, (name, data)])

    @contextmanager
    def _fetched(self, lease: Turn, output: Output) -> Iterator[Path]:
        """A file of the source while it is needed: no more bytes than its record says, and those alone."""
        hasher, remaining = hashlib.sha256(), output.size
        with tempfile.NamedTemporaryFile(dir=self.scratch) as file:
            try:
                for chunk in self.source.fetch(output, 0):
                    remaining -= len(chunk)
                    if remaining < 0:
                        raise LeftOutError(f"{output.filename} has more bytes than its record says")
                    hasher.update(chunk)
                    file.write(chunk)
                    self.on_bytes(len(chunk))
                    lease.renew()
            except KeyError as error:
                raise LeftOutError(f"{output.filename} is not there") from error
            if hasher.hexdigest() != output.sha256:
                raise LeftOutError(f"{output.filename} has other bytes than its record says")
            file.flush()
            yield Path(file.name)

    def _lock(self, name: str, signer: TrustedKey, data: bytes, word: Word) -> int:
        """Copy a lock, instead of an older one or of what that signer has not signed; how many are new."""
        path = word_name("lock", name, signer.keyid)
        existing = self.target.get(path, LARGEST)
        if existing is not None:
            with suppress(RefusedError):
                if word_of(existing, "lock", name, [signer.key]).signed >= word.signed:
                    return 0
        self.target.replace(path, data)
        return 1


def make_store(bucket: Bucket, name: str) -> None:
    """Make a bucket a store that is called so, if it is none.

    Raises InputError where it cannot be shared, or is of a newer rocwright.
    """
    bucket.check_writable()
    mark = json.dumps({"schema": SCHEMA, "name": name}).encode()
    if not bucket.add(FORMAT, mark):
        read_mark(bucket)


def publish_key(bucket: Bucket, keyid: str, pem: bytes) -> None:
    """Add a public key to the list of those who sign there, if it is not in it."""
    bucket.add(f"keys/{keyid}", pem)
    pems = [bucket.get(entry.name, LARGEST) for entry in bucket.list("keys")]
    listed = sorted({pem.decode() for pem in pems if pem is not None})
    bucket.replace(KEYS, json.dumps({"schema": SCHEMA, "keys": listed}, indent=1).encode())


# Raised for a list of a stranger's that is none, is nested too deeply, or has an endless number.
_UNREADABLE = (ValueError, TypeError, KeyError, RecursionError, OverflowError)


def plain_name(text: str) -> str:
    """A name as it may be written and shown, whoever chose it."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text[:60]).strip("-.") or "store"


def read_mark(bucket: Bucket) -> str:
    """What the store in a bucket calls itself. Raises InputError for what is none, or a newer rocwright's."""
    data = bucket.get(FORMAT, MOST_KEYS)
    try:
        mark = json.loads(data or b"")
        schema, name = int(mark["schema"]), plain_name(str(mark["name"]))
    except _UNREADABLE as error:
        raise InputError(
            f"there is no store of rocwright at {bucket}",
            cause=f"it has no {FORMAT}" if data is None else f"its {FORMAT} cannot be read: {error}",
            next_step="check the URL; rocwright store push --to URL makes one",
        ) from error
    if schema > SCHEMA:
        raise InputError(
            f"the store at {bucket} has schema {schema}; this rocwright knows up to {SCHEMA}",
            cause="a newer rocwright made it",
            next_step="upgrade rocwright",
        )
    return name


def listed_keys(bucket: Bucket) -> list[tuple[str, SSlibKey]]:
    """The public keys that a store says sign in it, PEM and key. Raises InputError for no list."""
    data = bucket.get(KEYS, MOST_KEYS)
    try:
        pems = [str(pem) for pem in json.loads(data or b"")["keys"]]
    except _UNREADABLE as error:
        raise InputError(
            f"the store at {bucket} lists no keys",
            cause=f"{KEYS} is not there" if data is None else f"{KEYS} cannot be read: {error}",
            next_step="ask its owner for the public key, and give that file instead",
        ) from error
    return [(pem, key_of(pem.encode(), f"a key of {bucket}")) for pem in pems[:100]]
