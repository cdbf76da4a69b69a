"""A shared store to build in: this machine's own in front of a bucket that others build in too.

What is made here is signed and put into the bucket at once; what others made and a trusted key signed is
fetched when it is read. The local store is a cache of it.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING

from rocbase.errors import InputError
from rocwright.store.damage import Damage
from rocwright.store.local import LocalStore
from rocwright.store.model import Record, in_store, is_key
from rocwright.store.push import Pusher
from rocwright.store.shared import SharedStore, word_name
from rocwright.store.sharing import SharingStore
from rocwright.store.signed import What, envelope_of
from rocwright.store.step_lease import lease_name, step_lease

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

    def lend(self, key: str) -> bool:
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
        self.local.forget(key)
        return False

    def _is_whole(self, shared: SharedStore, record: Record) -> bool:
        damaged = (self._damage.has(shared.bucket, output.sha256) for output in record.outputs)
        return not any(damaged) and shared.is_whole(record)

    def signers(self, record: Record) -> frozenset[str]:
        return frozenset(keyid or self.keyid for keyid in super().signers(record))

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

    def leased(self, key: str, on_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """While nobody else runs what has this key; `on_wait`, which may raise, is called where somebody
        does. This process is asked to end where it is not ours any more."""
        return step_lease(self._bucket, key, on_wait=on_wait, on_lost=_end)

    def step(self, key: str) -> bytes | None:
        return self.local.step(key) or self.shared[0].step(key)

    def put_step(self, key: str, definition: bytes) -> None:
        self.local.put_step(key, definition)
        self.say_word("step", key, definition.decode())

    def lock(self, name: str) -> AbstractContextManager[object]:
        return self._step(name) if is_key(name) else self.local.lock(name)

    def abandon(self, key: str) -> None:
        # who had it and is there after all finds that it is not its own any more, and ends
        self._bucket.remove(lease_name(key))

    @contextlib.contextmanager
    def _step(self, key: str) -> Iterator[None]:
        """Nobody else runs the step, here or elsewhere."""

        def wait() -> None:
            self.shared[0].say(f"{key[:12]} runs on another machine, or ran on one that is gone: waiting")

        with self.local.lock(key), self.leased(key, wait):
            yield


def _end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
