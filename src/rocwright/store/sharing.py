"""A local store in front of shared ones: what they have and nobody has built here is taken from them."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

from rocbase import units
from rocbase.errors import InputError, NetworkError, OutOfDiskError
from rocwright.store.blobs import Damage
from rocwright.store.local import LocalStore, disk_errors
from rocwright.store.model import DigestOf, Output, Record, digest_of_file, in_store, verified
from rocwright.store.packed import content_of
from rocwright.store.push import Pusher
from rocwright.store.shared import SharedStore, word_name
from rocwright.store.signed import What, envelope_of

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner


@dataclass(frozen=True, slots=True)
class Offered:
    """A file of a shared store, and the record there that says what it is."""

    shared: SharedStore
    output: Output
    record: Record

    @property
    def signer(self) -> str:
        """What who signed the record is called here."""
        return self.record.origin.by if self.record.origin is not None else "its signer"

    def __str__(self) -> str:
        return f"{self.output.filename} of {self.record.step} {self.record.key[:12]}"


class SharingStore:
    """The `Store` of a folder, and behind it shared stores in their order.

    What is asked of a shared store is kept for the life of this object. A file is fetched when it is first
    read, checked against its sha256, and goes on where a transfer was cut off. Then it is unpacked once where
    its record says what its content is: a record that says so falsely is not used.
    """

    def __init__(self, local: LocalStore, shared: Sequence[SharedStore]) -> None:
        self.local, self.shared = local, shared
        self._offered: dict[str, tuple[SharedStore, Record] | None] = {}
        self._files: dict[str, Offered] = {}
        self._contents: dict[str, str] = {}
        """What is in the files here of which a shared record says it, by their sha256."""
        self._withdrawn: set[str] = set()
        """The keys of what is offered and cannot be had: it is not asked for again."""

    @property
    def url(self) -> str:
        return self.local.url

    def __str__(self) -> str:
        return str(self.local)

    # what the shared ones have

    def record(self, key: str, on_damage: Callable[[str], object] = lambda key: None) -> Record | None:
        existing = self.local.record(key, on_damage)
        if in_store(self.local, existing):
            return existing
        offered = self._offer(key)
        return offered[1] if offered is not None else existing

    def _offer(self, key: str) -> tuple[SharedStore, Record] | None:
        if key not in self._offered:
            records = ((store, store.record(key)) for store in self.shared)
            offers = ((store, record) for store, record in records if record is not None)
            self._offered[key] = next((offer for offer in offers if self._noted(*offer)), None)
        return self._offered[key]

    def _noted(self, shared: SharedStore, record: Record) -> bool:
        """Note the files of a record, but of one that says something else of a file than another does."""
        for output in record.outputs:
            offered = Offered(shared, output, record)
            first = self._files.setdefault(output.sha256, offered)
            if not first.output.content:
                self._files[output.sha256] = offered
            elif output.content and output.content != first.output.content:
                shared.say(
                    f"{shared.name}: {offered} was refused: {offered.signer} signed that its content is "
                    f"{output.content[:12]}, {first.signer} that it is {first.output.content[:12]}"
                )
                return False
        return True

    def has(self, sha256: str, size: int | None = None) -> bool:
        if self.local.has(sha256, size):
            return True
        return sha256 in self._files and size in (None, self._files[sha256].output.size)

    def bring(
        self, key: str, on_bytes: Callable[[int], None] = lambda count: None, *, here: bool = True
    ) -> bool:
        offered = self._offered.get(key)
        if offered is None:
            return True
        shared, record = offered
        try:
            for output in record.outputs:
                self._bring_file(Offered(shared, output, record), on_bytes)
        except (KeyError, NetworkError, InputError) as error:
            shared.say(f"{shared.name}: {record.step} {key[:12]} cannot be had: {_reason(error)}")
            self._withdraw(key, record)
            return False
        self.local.put_record(record)
        definition = shared.step(key)
        if definition is not None and self.local.step(key) is None:
            self.local.put_step(key, definition)
        return True

    def _withdraw(self, key: str, record: Record) -> None:
        self._withdrawn.add(key)
        self._offered[key] = None
        for output in record.outputs:
            self._files.pop(output.sha256, None)

    def _bring_file(self, offered: Offered, on_bytes: Callable[[int], None] = lambda count: None) -> None:
        """Have a file here that is what its record says. Raises as `_fetch` does."""
        sha256, content = offered.output.sha256, offered.output.content
        if not self.local.has(sha256, offered.output.size):
            self._fetch(offered.shared, offered.output, on_bytes)
        if not content:
            return
        if sha256 not in self._contents:
            self._contents[sha256] = content_of(verified(self.local, sha256))
        if (actual := self._contents[sha256]) != content:
            raise InputError(
                f"{offered.signer} signed a false digest of the content of {offered}",
                cause=f"the record in {offered.shared.name} says {content[:12]}, and it is "
                f"{actual[:12] or 'no tar that can be unpacked'}",
                next_step=f"tell {offered.signer}; rocwright trust remove {offered.signer}, "
                "if it was no mistake",
            )

    def _fetch(self, shared: SharedStore, output: Output, on_bytes: Callable[[int], None]) -> None:
        """Raises KeyError, NetworkError, and InputError for bytes that are not what they should be."""
        sha256 = output.sha256
        part = self.local.path / "tmp" / f"fetch-{sha256}.part"
        with self.local.layout.lock(f"fetch-{sha256[:16]}"):
            if self.local.has(sha256, output.size):
                return
            hasher, size = hashlib.sha256(), 0
            free = shutil.disk_usage(part.parent).free
            if output.size > free:
                raise OutOfDiskError(
                    f"{output.filename} of {shared.name} does not fit on the disk that holds {self.local}",
                    cause=f"it has {units.size(output.size)}, and {units.size(free)} are free",
                    next_step="free some disk space: rocwright clean --dry-run lists what can be removed",
                )
            with disk_errors(self.local.path), part.open("a+b") as file:
                file.seek(0)
                while chunk := file.read(1 << 20):
                    hasher.update(chunk)
                    size += len(chunk)
                if size > output.size:
                    raise self._other_bytes(shared, part, sha256, "more than it should be")
                # hashed by another thread while it is written and the next is read
                with ThreadPoolExecutor(1) as pool:
                    for chunk in shared.fetch(output, size) if size < output.size else ():
                        size += len(chunk)
                        if size > output.size:
                            raise self._other_bytes(shared, part, sha256, "more than it should be")
                        hashed = pool.submit(hasher.update, chunk)
                        file.write(chunk)
                        on_bytes(len(chunk))
                        hashed.result()
            if hasher.hexdigest() != sha256:
                raise self._other_bytes(shared, part, sha256, f"{hasher.hexdigest()[:12]} for {sha256[:12]}")
            self.local.take_hashed(part, sha256)

    def _other_bytes(self, shared: SharedStore, part: Path, sha256: str, cause: str) -> InputError:
        with contextlib.suppress(OSError):
            part.unlink()
        Damage(self.local.path).note(shared.bucket, sha256)
        return InputError(
            f"{shared.name} has other bytes than its record says",
            cause=cause,
            next_step="tell whoever keeps that store: the file was damaged or replaced",
        )

    # what is kept here

    def put_file(self, path: Path, *, move: bool = False) -> tuple[str, int]:
        return self.local.put_file(path, move=move)

    def opened(self, sha256: str, digest_of: DigestOf = digest_of_file) -> BufferedReader:
        self._have(sha256)
        return self.local.opened(sha256, digest_of)

    def _have(self, sha256: str) -> None:
        if sha256 in self._files:
            self._bring_file(self._files[sha256])

    def put_record(self, record: Record) -> Record:
        return self.local.put_record(record)

    def step(self, key: str) -> bytes | None:
        return self.local.step(key)

    def put_step(self, key: str, definition: bytes) -> None:
        self.local.put_step(key, definition)


def _reason(error: KeyError | NetworkError | InputError) -> str:
    if isinstance(error, KeyError):
        return "the file is gone from it"
    return f"{error.message} ({error.cause})"


class WorkingStore(SharingStore):
    """The `Store` of the bucket of the first of the shared stores, which reads by what is trusted, this
    machine's own key included. `name` is what it is called where it is made here."""

    def __init__(
        self, local: LocalStore, shared: Sequence[SharedStore], signer: CryptoSigner, name: str
    ) -> None:
        super().__init__(local, shared)
        self._bucket, self._signer, self._name = shared[0].bucket, signer, name
        self._damage = Damage(local.path)

    @property
    def url(self) -> str:
        return self._bucket.url

    def __str__(self) -> str:
        return self.url

    @cached_property
    def _pusher(self) -> Pusher:
        pusher = Pusher(self.local, self._bucket, self._signer, damage=self._damage)
        # who is listed there has opened it before
        if self._bucket.size(f"keys/{self._signer.public_key.keyid}") is None:
            pusher.open(self._name)
        return pusher

    def _offer(self, key: str) -> tuple[SharedStore, Record] | None:
        offered = super()._offer(key)
        if offered is None and key not in self._withdrawn:
            # somebody may be making it now
            del self._offered[key]
        return offered

    def put_record(self, record: Record) -> Record:
        if record.origin is not None:
            # its outputs are those of an equal step that another machine ran: signed here, not compiled
            note = f"the outputs of {record.reused[:12]}, {record.origin}"
            record = record.model_copy(
                update={
                    "origin": None,
                    "notes": (*record.notes, note),
                    "ran_by": record.ran_by or record.origin.keyid,
                }
            )
            for output in record.outputs:
                self._have(output.sha256)
        stored = self.local.put_record(record)
        self._push(stored)
        return stored

    def bring(
        self, key: str, on_bytes: Callable[[int], None] = lambda count: None, *, here: bool = True
    ) -> bool:
        return super().bring(key, on_bytes) if here else self._lend(key)

    def _lend(self, key: str) -> bool:
        """Have the outputs of the record of that key in the bucket; whether they are."""
        offered, record = self._offer(key), self.local.record(key)
        if offered is not None:
            shared, theirs = offered
            damaged = (self._damage.has(shared.bucket, output.sha256) for output in theirs.outputs)
            if not any(damaged) and shared.is_whole(theirs):
                return True
        if record is not None and record.origin is None and in_store(self.local, record):
            # also what lies there cut short or damaged is put anew
            self._push(record)
            return True
        if offered is not None:
            shared, theirs = offered
            shared.say(
                f"{shared.name}: a file of {theirs.step} {key[:12]} is damaged, cut short or gone: made again"
            )
            self._withdraw(key, theirs)
        elif record is None:
            return True
        # what others cannot have any more is made again
        self.local.remove("record", key)
        return False

    def _push(self, record: Record) -> None:
        left_out = self._pusher.records([record.key]).left_out
        if left_out:
            raise InputError(
                f"{record.step} cannot be put into {self}",
                cause="; ".join(left_out),
                next_step="rocwright store verify; rocwright clean forgets what is here",
            )

    @property
    def keyid(self) -> str:
        """The id of the key that signs here."""
        return str(self._signer.public_key.keyid)

    def say_word(self, kind: What, name: str, content: str) -> None:
        """Say something of a name, signed, instead of what was said of it before. Raises NetworkError."""
        envelope = envelope_of(kind, name, content, self._signer)
        self._pusher.bucket.replace(word_name(kind, name, self.keyid), envelope)

    def step(self, key: str) -> bytes | None:
        return self.local.step(key) or self.shared[0].step(key)

    def put_step(self, key: str, definition: bytes) -> None:
        self.local.put_step(key, definition)
        self.say_word("step", key, definition.decode())
