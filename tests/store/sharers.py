"""Machines that share a store: each with a key, a store of its own, and what it trusts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from securesystemslib.signer import CryptoSigner
from tests.making import digest, record_of

from rocwright.model.steps import FetchAction, Input, Step
from rocwright.store.blobs import Damage
from rocwright.store.bucket import Bucket
from rocwright.store.local import LocalStore
from rocwright.store.model import Output, Record
from rocwright.store.push import Pusher
from rocwright.store.shared import SharedStore
from rocwright.store.sharing import SharingStore
from rocwright.store.signing.keys import make_key, pem_of, signer_of
from rocwright.store.trust import TrustedKey

ADDED = "2026-01-01T00:00:00Z"


@dataclass
class Machine:
    """`said` is what was told of shared stores."""

    path: Path
    name: str
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = LocalStore(self.path / "store")
        self.signer: CryptoSigner = signer_of(make_key(self.path / f"{self.name}.key").private)

    @property
    def key(self) -> TrustedKey:
        return TrustedKey(name=self.name, pem=pem_of(self.signer).decode(), added=ADDED)

    def make(self, data: bytes = b"what was built", name: str = "engine", *needs: Record) -> Record:
        """Build something here: a step, its file and its record."""
        inputs = tuple(Input(name=one.step, key=one.key, output="out") for one in needs)
        step = Step(name=name, component=name, action=FetchAction(pending=name), inputs=inputs)
        path = self.path / "made"
        path.write_bytes(data)
        sha256, size = self.store.put_file(path)
        self.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
        output = Output(name="out", filename="made.tar", sha256=sha256, size=size)
        return self.store.put_record(record_of(step, output))

    def pusher(
        self,
        bucket: Bucket,
        on_bytes: Callable[[int], None] = lambda size: None,
        damage: Damage | None = None,
    ) -> Pusher:
        return Pusher(self.store, bucket, self.signer, on_bytes, damage)

    def push(self, bucket: Bucket, *records: Record) -> None:
        pusher = self.pusher(bucket)
        pusher.open("lab")
        pusher.records(one.key for one in records)

    def behind(self, bucket: Bucket, *trusted: TrustedKey, agree: int = 1) -> SharingStore:
        """This machine's store in front of a bucket."""
        shared = SharedStore(name="lab", bucket=bucket, keys=trusted, note=self.said.append, agree=agree)
        return SharingStore(self.store, [shared])


def other(name: str) -> str:
    """Some key that nobody has built."""
    return digest(name)
