"""Which files of shared stores were found damaged from here: the next push or build puts them anew."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from hashlib import sha256 as hashed
from pathlib import Path

from rocbase.files.atomic import write_atomic
from rocwright.store.bucket import Bucket
from rocwright.store.model import is_key


@dataclass(frozen=True, slots=True)
class Damage:
    """Notes of this machine, in the folder of its own store where damaged files lie. A note that is lost with
    it costs that the file is found damaged again."""

    store: Path

    def note(self, bucket: Bucket, sha256: str) -> None:
        """A file there has other bytes than its name says."""
        if is_key(sha256):
            self._path(bucket, sha256).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self._path(bucket, sha256), f"{bucket}\n")

    def has(self, bucket: Bucket, sha256: str) -> bool:
        """Whether a file there was found damaged, and nobody here has put it anew."""
        return self._path(bucket, sha256).is_file()

    def mended(self, bucket: Bucket, sha256: str) -> None:
        """It was put anew."""
        with contextlib.suppress(OSError):
            self._path(bucket, sha256).unlink()

    def _path(self, bucket: Bucket, sha256: str) -> Path:
        return self.store / "damaged" / f"shared-{sha256}-{hashed(bucket.url.encode()).hexdigest()[:16]}"
