"""A shared store to build in: this machine's own in front of a bucket that others build in too.

What is made here is signed and put into the bucket at once; what others made and a trusted key signed is
fetched when it is read. The local store is a cache of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from rocbase.errors import InputError
from rocwright.store.blobs import Damage
from rocwright.store.local import LocalStore
from rocwright.store.model import Record, in_store
from rocwright.store.push import Pusher
from rocwright.store.shared import SharedStore, word_name
from rocwright.store.sharing import SharingStore
from rocwright.store.signed import What, envelope_of

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner


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
        if offered is not None and self._is_whole(*offered):
            return True
        if record is not None and record.origin is None and in_store(self.local, record):
            # also what lies there cut short or damaged is put anew
            self._push(record)
            return True
        if offered is not None:
            shared, broken = offered
            shared.say(
                f"{shared.name}: a file of {broken.step} {key[:12]} is damaged, cut short or gone: made again"
            )
            self._withdraw(key, broken)
        elif record is None:
            return True
        # what others cannot have any more is made again
        self.local.remove("record", key)
        return False

    def _is_whole(self, shared: SharedStore, record: Record) -> bool:
        damaged = (self._damage.has(shared.bucket, output.sha256) for output in record.outputs)
        return not any(damaged) and shared.is_whole(record)

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
