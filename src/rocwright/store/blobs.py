"""The files of a shared store, named by their sha256: each in one object, or in several where it is large.

obstore (0.12) gives no upload id with which a multipart upload could go on, and the URLs that it signs cover
no query, without which S3 takes no part. So a large file lies in objects of LARGE bytes, and an upload that
was cut goes on with the first that is not there. In a folder, from which a web server can give it, it is one.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256 as hashed
from pathlib import Path
from typing import BinaryIO

from rocbase.files.atomic import write_atomic
from rocwright.store.bucket import CHUNK, Bucket
from rocwright.store.model import is_key
from rocwright.store.shared_folder import Listed

FOLDER = "blobs"
# Bytes of each object of a file that has more; it belongs to the layout of a store.
LARGE = 64 * 1024 * 1024


def blob_name(sha256: str) -> str:
    """Where a file lies that is one object."""
    return f"{FOLDER}/{sha256[:2]}/{sha256}"


def parts_of(sha256: str, size: int) -> Iterator[tuple[str, int, int]]:
    """Where a large file of that size lies: the name of each object, the byte at which it begins, and how
    many it has. One by one, as the size may be a stranger's word."""
    count = -(-size // LARGE)
    for number in range(count):
        offset = number * LARGE
        yield f"{blob_name(sha256)}/{number + 1:05}-of-{count:05}", offset, min(LARGE, size - offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A file that lies there: where, bytes, when the last of it was written, the names of the objects that
    are read for it, of all that belong to it, and whether all of it is there."""

    sha256: str
    name: str
    size: int
    written: float
    read: tuple[str, ...]
    names: tuple[str, ...]
    whole: bool

    @classmethod
    def of(cls, sha256: str, entries: list[Listed]) -> Blob:
        """The file of that name by its objects; one that is all of it counts before those that are parts."""
        single = [entry for entry in entries if entry.name.endswith(f"/{sha256}")]
        read = single or sorted(entries, key=lambda entry: entry.name)
        names, size = tuple(entry.name for entry in read), sum(entry.size for entry in read)
        return cls(
            sha256=sha256,
            name=single[0].name if single else blob_name(sha256),
            size=size,
            written=max(entry.written for entry in entries),
            read=names,
            names=tuple(entry.name for entry in entries),
            whole=bool(single) or [*names] == [name for name, _, _ in parts_of(sha256, size)],
        )


@dataclass(frozen=True, slots=True)
class Blobs:
    """The files in a bucket."""

    bucket: Bucket

    def has(self, sha256: str, size: int) -> bool:
        """Whether a file is there, of that size; its bytes are not looked at."""
        stored = self.bucket.size(blob_name(sha256))
        if stored is not None or size <= LARGE:
            return stored == size
        parts = self._parts(sha256)
        return all(parts.get(name) == length for name, _, length in parts_of(sha256, size))

    def chunks(self, sha256: str, size: int, begin: int = 0) -> Iterator[bytes]:
        """The bytes of a file of that size, from one on, unchecked. Raises KeyError where some are gone."""
        if size > LARGE:
            try:
                yield from self.bucket.chunks(blob_name(sha256), begin)
            except KeyError:
                yield from _one_ahead(
                    self.bucket.chunks(name, max(0, begin - offset))
                    for name, offset, length in parts_of(sha256, size)
                    if begin < offset + length
                )
            return
        yield from self.bucket.chunks(blob_name(sha256), begin)

    def put(
        self, path: Path, sha256: str, size: int, *, anew: bool = False, on_bytes: Callable[[int], None]
    ) -> int:
        """Put a file, or what is missing of it; with `anew` all of it, over what is there. Gives the bytes
        that were sent, and tells of them as they go."""
        name = blob_name(sha256)
        if size <= LARGE or self.bucket.is_folder or self.bucket.size(name) is not None:
            # what lies there under the name and has another size is none of it
            if anew or not self.bucket.add(name, path):
                self.bucket.replace(name, path)
            on_bytes(size)
            return size
        sent, parts = 0, {} if anew else self._parts(sha256)
        with path.open("rb") as file:
            for part, offset, length in parts_of(sha256, size):
                if parts.get(part) != length:
                    file.seek(offset)
                    self.bucket.replace(part, _slice(file, length))
                    on_bytes(length)
                    sent += length
        return sent

    def found(self) -> dict[str, Blob]:
        """Every file by its sha256; also what was not put by us, by its name, and what is not all there."""
        objects: defaultdict[str, list[Listed]] = defaultdict(list)
        for entry in self.bucket.list(FOLDER):
            words = entry.name.split("/")
            objects[words[2] if len(words) == 4 else words[-1]].append(entry)
        return {sha256: Blob.of(sha256, entries) for sha256, entries in objects.items()}

    def _parts(self, sha256: str) -> dict[str, int]:
        return {entry.name: entry.size for entry in self.bucket.list(blob_name(sha256))}


def _one_ahead(streams: Iterator[Iterator[bytes]]) -> Iterator[bytes]:
    """What comes of these, one after the other; the next is asked for while one comes, as a far bucket takes
    a while to answer."""

    def fetch_first(stream: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
        return next(stream, b""), stream

    with ThreadPoolExecutor(1) as pool:
        coming: Future[tuple[bytes, Iterator[bytes]]] | None = pool.submit(fetch_first, next(streams))
        while coming is not None:
            first, stream = coming.result()
            following = next(streams, None)
            coming = pool.submit(fetch_first, following) if following is not None else None
            yield first
            yield from stream


def _slice(file: BinaryIO, remaining: int) -> Iterator[bytes]:
    while remaining and (chunk := file.read(min(CHUNK, remaining))):
        remaining -= len(chunk)
        yield chunk


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
