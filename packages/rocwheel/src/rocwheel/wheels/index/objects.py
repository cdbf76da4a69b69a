"""An index in an object store: by its URL, and the settings that the store's own clients have."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rocwheel.errors import InputError, NetworkError
from rocwheel.wheels.index.examine import Seen, open_as_seen
from rocwheel.wheels.index.tree import CHUNK, content_type

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PATIENCE = timedelta(seconds=60)
"""How long one request is tried again where a store does not answer."""

RETRIES = 5

AT_ONCE = 1000
"""Objects that are removed with one request."""

_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"
_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,60})</Code>|\b(status[^.]{0,20}\b[1-5]\d\d)\b", re.IGNORECASE)


class ObjectTree:
    """A tree of objects. Wheels lie under their hash, so that an object that is there need not be sent.

    Raises InputError for an address that cannot be, NetworkError where the store refuses or does not answer.
    What a store says is never shown whole: it may repeat what a request was signed with.
    """

    several_processes = False

    def __init__(self, url: str) -> None:
        self._place = _shown(url)
        self._known: dict[str, tuple[int, str]] | None = None
        self._store = _open(url, self._place)

    def holds(self, folder: Path) -> bool:
        return False

    def survey(self) -> None:
        """List everything once, so that what is there already need not be sent or asked for one by one."""
        self._known = {key: (size, tag) for key, size, tag in self._list("")}

    def read(self, key: str) -> bytes | None:
        import obstore

        with self._errors(f"read {key}"):
            try:
                return bytes(obstore.get(self._store, key).bytes())
            except FileNotFoundError:
                return None

    def chunks(self, key: str) -> Iterator[bytes]:
        import obstore

        with self._errors(f"read {key}"):
            for chunk in obstore.get(self._store, key).stream(min_chunk_size=CHUNK):
                yield bytes(chunk)

    def size(self, key: str) -> int | None:
        import obstore

        with self._errors(f"look for {key}"):
            try:
                return int(obstore.head(self._store, key)["size"])
            except FileNotFoundError:
                return None

    def put(self, key: str, data: bytes) -> bool:
        # of what is sent in one piece and not encrypted by a key of its own, S3 gives the MD5 as the tag
        md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
        if self._known is not None and self._known.get(key) == (len(data), md5):
            return False
        self._put(key, data)
        return True

    def put_wheel(self, key: str, folder: Path, seen: Seen) -> bool:
        size = self.size(key) if self._known is None else self._known.get(key, (None,))[0]
        if size == seen.size:
            return False
        with open_as_seen(folder, seen) as file:
            self._put(key, file)
        try:
            open_as_seen(folder, seen).close()
        except Exception:
            self.delete([key])
            raise
        return True

    def keys(self, prefix: str) -> Iterator[str]:
        for key, _, _ in self._list(prefix):
            yield key

    def delete(self, keys: Iterable[str]) -> int:
        import obstore

        wanted = list(keys)
        for at in range(0, len(wanted), AT_ONCE):
            part = wanted[at : at + AT_ONCE]
            with self._errors("remove files"):
                try:
                    obstore.delete(self._store, part)
                except FileNotFoundError:  # some stores stop at the first that is not there
                    for key in part:
                        with suppress(FileNotFoundError):
                            obstore.delete(self._store, [key])
            for key in part:
                self._forget(key)
        return len(wanted)

    def settle(self) -> None:
        """An object that was taken is kept."""

    def _put(self, key: str, data: Any) -> None:
        import obstore

        self._forget(key)
        kept = _FOR_EVER if content_type(key) == content_type("") else _ASK_AGAIN
        with self._errors(f"write {key}"):
            obstore.put(
                self._store, key, data, attributes={"Content-Type": content_type(key), "Cache-Control": kept}
            )

    def _forget(self, key: str) -> None:
        if self._known is not None:
            self._known.pop(key, None)

    def _list(self, prefix: str) -> Iterator[tuple[str, int, str]]:
        import obstore

        with self._errors("list files"):
            for batch in obstore.list(self._store, prefix or None):
                for one in batch:
                    yield one["path"], one["size"], (one["e_tag"] or "").strip('"')

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError, RuntimeError, ValueError) as error:
            if isinstance(error, FileNotFoundError) and error.errno is not None:
                raise  # a wheel of the folder
            told = _CODE.search(str(error))
            raise NetworkError(
                f"cannot {doing} in {self._place}",
                cause=f"{type(error).__name__}{f': {told[1] or told[2]}' if told else ''}",
                next_step="check the address, the credentials in the environment, and their permissions",
            ) from None


def _open(url: str, place: str) -> ObjectStore:
    from obstore.exceptions import BaseError
    from obstore.store import from_url

    try:
        return from_url(url, retry_config={"max_retries": RETRIES, "retry_timeout": PATIENCE})
    except (BaseError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{place} is not the address of an object store",
            cause=f"{type(error).__name__}",
            next_step="give s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX, or a folder",
        ) from None


def _shown(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{(parts.hostname or '')[:100]}{parts.path[:200]}"
