"""Putting what was built here into a shared store: files first, then signed records."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocbase.errors import InputError
from rocwright.store.blobs import Blobs
from rocwright.store.bucket import Bucket
from rocwright.store.damage import Damage
from rocwright.store.leases import Turn, turn
from rocwright.store.model import Output, Record, Store, in_store, verified
from rocwright.store.seal import DamagedRecordError, UnknownRecordError, seal, unseal
from rocwright.store.shared import FORMAT, KEYS, SCHEMA, word_name
from rocwright.store.signed import LARGEST, RefusedError, envelope_of, word_of
from rocwright.store.signing.keys import key_of, pem_of

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner, SSlibKey

MOST_KEYS = 256 * 1024
"""Bytes of the list of keys."""


@dataclass(slots=True, kw_only=True)
class Pushed:
    """What a push did: records and locks that were signed, files and bytes that were sent, records that were
    there already, and what was left out with the reason."""

    records: int = 0
    locks: int = 0
    there: int = 0
    files: int = 0
    size: int = 0
    left_out: tuple[str, ...] = ()


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

    def records(self, keys: Iterable[str]) -> Pushed:
        """Push the records of keys, with their files and the definitions of their steps.

        Raises InputError where somebody cleans up there.
        """
        with turn(self.bucket, "push") as lease:
            return self._records(dict.fromkeys(keys), lease)

    def _records(self, keys: Iterable[str], lease: Turn) -> Pushed:
        pushed, left_out = Pushed(), []
        for key in keys:
            lease.renew()
            record = self.store.record(key)
            if record is None or not in_store(self.store, record):
                continue
            if record.origin is not None:
                left_out.append(f"{record.step}: built by {record.origin.by}, who signs it")
                continue
            reason = self._record(record, lease, pushed)
            left_out += [f"{record.step}: {reason}"] if reason else []
        pushed.left_out = tuple(left_out)
        return pushed

    def _record(self, record: Record, lease: Turn, pushed: Pushed) -> str:
        """Push one; why it was not, "" where it was or is there."""
        name = word_name("record", record.key, self.signer.public_key.keyid)
        existing = self.bucket.get(name, LARGEST)
        if existing is not None:
            stored = self._own_record(existing, record.key)
            if stored is None:
                return f"a record that is not ours lies there under our name: {name}"
            if not stored.gave_same(record):
                return "other bytes were pushed before: it is not reproducible here, and the first stand"
            # of those that were packed otherwise before, nothing is here
            self._files(
                [output for output in stored.outputs if self.store.has(output.sha256, output.size)],
                lease,
                pushed,
            )
            pushed.there += 1
            return ""
        self._files(record.outputs, lease, pushed)
        definition = self.store.step(record.key)
        if definition is not None:
            envelope = envelope_of("step", record.key, definition.decode(), self.signer)
            self.bucket.add(word_name("step", record.key, self.signer.public_key.keyid), envelope)
        self.bucket.add(name, envelope_of("record", record.key, seal(record).decode(), self.signer))
        # a clean-up may have taken a file that was there before the record that names it was
        self._files(record.outputs, lease, pushed)
        pushed.records += 1
        return ""

    def _own_record(self, data: bytes, key: str) -> Record | None:
        try:
            return unseal(word_of(data, "record", key, [self.signer.public_key]).content.encode(), key)
        except (RefusedError, DamagedRecordError, UnknownRecordError):
            return None

    def _files(self, outputs: Iterable[Output], lease: Turn, pushed: Pushed) -> None:
        def sent(size: int) -> None:
            lease.renew()
            self.on_bytes(size)

        for output in outputs:
            damaged = self.damage is not None and self.damage.has(self.bucket, output.sha256)
            if not damaged and Blobs(self.bucket).has(output.sha256, output.size):
                continue
            path = verified(self.store, output.sha256)
            pushed.size += Blobs(self.bucket).put(
                path, output.sha256, output.size, anew=damaged, on_bytes=sent
            )
            pushed.files += 1
            if self.damage is not None and damaged:
                self.damage.mended(self.bucket, output.sha256)

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


_UNREADABLE = (ValueError, TypeError, KeyError, RecursionError, OverflowError)
"""Raised for a list of a stranger's that is none, is nested too deeply, or has an endless number."""


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
