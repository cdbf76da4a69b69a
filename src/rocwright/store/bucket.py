"""Objects in a bucket, a folder, or on a web server: named, bounded, and never written over."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult

from rocbase.errors import ExplainedError, InputError, NetworkError
from rocbase.http.address import split
from rocwright.store.shared_folder import Listed, SharedFolder

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES = ("s3", "gs", "az", "file", "https", "http")
READ_ONLY = ("https", "http")

CONNECT_SECONDS = 10
# For one answer; a transfer of many bytes is many of them.
SECONDS = 60
TRIES = 3
# Bytes of a part of an upload.
PART = 8 * 1024 * 1024
# Bytes that are read at once, at least; more of them at once were slower.
CHUNK = 1024 * 1024
# Small objects that are asked for at the same time: each is a way to another machine and back.
ASKED_AT_ONCE = 8


def is_bucket(url: str) -> bool:
    """Whether a URL names a place that `Bucket` opens."""
    return split(url).scheme in SCHEMES


def plain_url(url: str) -> str:
    """A URL as it may be shown: without user, password, query and fragment."""
    parts = split(url)
    host = parts.netloc.rpartition("@")[2]
    return SplitResult(parts.scheme, host, parts.path.rstrip("/"), "", "").geturl()


def checked_url(url: str) -> SplitResult:
    """The parts of the URL of a shared store. Raises InputError for another scheme, and for credentials."""
    parts = split(url)
    if parts.scheme not in SCHEMES:
        raise InputError(
            f"unsupported store URL: {parts.scheme or url}",
            cause=f"a shared store is at {', '.join(f'{scheme}://' for scheme in SCHEMES)}",
            next_step="give one of these" if parts.scheme else f"a folder is {Path(url).absolute().as_uri()}",
        )
    if parts.username or parts.password or parts.query:
        raise InputError(
            f"the URL of a store has credentials in it: {plain_url(url)}",
            cause="it is written down and shown, and they would be too",
            next_step="leave them out: AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, "
            "AZURE_STORAGE_ACCOUNT_KEY and their kin are read from the environment",
        )
    return parts


class Bucket:
    """The objects below a URL. Credentials come from the variables and files of each cloud, never from it.

    Whatever does not answer is a NetworkError; what the service refuses, an InputError. Nothing that is
    raised has more of the URL than `plain_url` shows. An answer may take `seconds`, and is asked for so many
    `tries` more where it fails.
    """

    def __init__(self, url: str, *, seconds: float = SECONDS, tries: int = TRIES) -> None:
        parts = checked_url(url)
        self.url = plain_url(url)
        self._seconds, self._tries = seconds, tries
        self.writable = parts.scheme not in READ_ONLY
        self._folder = Path(parts.path) if parts.scheme == "file" else None
        self._shared = SharedFolder(self._folder) if self._folder is not None else None
        self._store = self._opened(url, parts) if self._folder is None else None

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder of this machine's file system."""
        return self._folder is not None

    def __str__(self) -> str:
        return self.url

    def _opened(self, url: str, parts: SplitResult) -> ObjectStore:
        from obstore.exceptions import BaseError
        from obstore.store import from_url

        client: Any = {
            "connect_timeout": timedelta(seconds=min(CONNECT_SECONDS, self._seconds / 4)),
            "timeout": timedelta(seconds=self._seconds),
            # what is read is signed, or named by its sha256
            "allow_http": parts.scheme == "http" or _without_tls(parts.scheme),
        }
        tries: Any = {"max_retries": self._tries, "retry_timeout": timedelta(seconds=2 * self._seconds)}
        try:
            return from_url(url, client_options=client, retry_config=tries)
        except (BaseError, ValueError) as error:
            # nothing was asked yet: it is what the variables say, or do not say
            raise InputError(
                f"{self.url} cannot be opened",
                cause=_first_line(error),
                next_step="check the URL, and the credentials in the environment",
            ) from error

    def _objects(self, *, make: bool = False) -> ObjectStore:
        """What the library calls it. A folder is made when something is to be put into it, and not before.

        Raises KeyError for a folder that is not there.
        """
        if self._store is None:
            from obstore.store import LocalStore

            assert self._folder is not None
            if make:
                self._folder.mkdir(parents=True, exist_ok=True)
            elif not self._folder.is_dir():
                raise KeyError(str(self._folder))
            self._store = LocalStore(self._folder)
        return self._store

    # reading

    def get(self, name: str, limit: int) -> bytes | None:
        """The bytes of an object, None where there is none. Raises InputError for more than `limit`."""
        content = bytearray()
        try:
            for chunk in self.chunks(name):
                content += chunk
                if len(content) > limit:
                    raise InputError(
                        f"{name} in {self} has more than {limit:,} bytes",
                        cause="it is no object of a store of rocwright, or was made to exhaust this machine",
                        next_step="ask whoever keeps that store",
                    )
        except KeyError:
            return None
        return bytes(content)

    def chunks(self, name: str, begin: int = 0) -> Iterator[bytes]:
        """The bytes of an object from one on, as they come. Raises KeyError where there is none.

        A client gives an answer so many seconds with all of its bytes, however many still come: what is left
        then is asked for anew.
        """
        while True:
            received = 0
            try:
                for chunk in self._chunks(name, begin):
                    received += len(chunk)
                    yield chunk
            except NetworkError:
                if not received or not self._tries:
                    raise
                begin += received
            else:
                return

    def _chunks(self, name: str, begin: int) -> Iterator[bytes]:
        import obstore
        from obstore.exceptions import NotSupportedError

        with self._explained(f"read {name}"):
            if self._shared is not None:
                yield from self._shared.chunks(name, begin)
                return
            options: Any = {"range": {"offset": begin}} if begin else None
            try:
                response = obstore.get(self._objects(), name, options=options)
            except NotSupportedError:
                # a plain web server that knows no ranges: what is there already comes again
                response = obstore.get(self._objects(), name)
            else:
                begin = 0
            for chunk in response.stream(min_chunk_size=CHUNK):
                yield bytes(chunk)[begin:]
                begin = max(0, begin - len(chunk))

    def size(self, name: str) -> int | None:
        """Bytes of an object, None where there is none."""
        import obstore

        try:
            with self._explained(f"look at {name}"):
                if self._shared is not None:
                    return self._shared.stat(name).st_size
                return int(obstore.head(self._objects(), name)["size"])
        except KeyError:
            return None

    def tag(self, name: str) -> str | None:
        """What tells this writing of an object from every other; None where there is none."""
        import obstore

        try:
            with self._explained(f"look at {name}"):
                if self._shared is not None:
                    self._shared.stat(name)
                return str(obstore.head(self._objects(), name)["e_tag"])
        except KeyError:
            return None

    def list(self, folder: str) -> Iterator[Listed]:
        """Every object in a folder, at any depth."""
        import obstore

        with self._explained(f"list {folder}"), contextlib.suppress(KeyError):
            if self._shared is not None:
                yield from self._shared.list(folder)
                return
            for some in obstore.list(self._objects(), f"{folder}/"):
                for entry in some:
                    yield Listed(entry["path"], entry["size"], entry["last_modified"].timestamp())

    # writing

    def add(self, name: str, data: bytes | Path) -> bool:
        """Put an object where there is none of that name; whether it was put. A file is read in parts."""
        import obstore

        with self._explained(f"write {name}"), self._bucket_exists():
            if self._shared is not None:
                return self._shared.put(name, data, replace=False)
            # a conditional put is one request: only what is large, and named by its hash, goes in parts
            if isinstance(data, Path) and data.stat().st_size > PART:
                if self.size(name) == data.stat().st_size:
                    return False
                obstore.put(self._objects(make=True), name, data, chunk_size=PART, max_concurrency=4)
                return True
            return self._create(name, data)

    def _create(self, name: str, data: bytes | Path) -> bool:
        """Put a small object where there is none of that name; whether it was put.

        obstore repeats no conditional put. If the connection broke, the object may be there: the same content
        then counts as put.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError

        for tries in range(self._tries, -1, -1):
            try:
                obstore.put(self._objects(make=True), name, data, mode="create")
                return True
            except (AlreadyExistsError, PreconditionError):
                return tries < self._tries and self._holds(name, data)
            except GenericError as error:
                if not tries or "kind: Interrupted" not in str(error):
                    raise
        return False

    def _holds(self, name: str, data: bytes | Path) -> bool:
        content = data if isinstance(data, bytes) else data.read_bytes()
        return self.size(name) == len(content) and self.get(name, len(content)) == content

    def replace(self, name: str, data: bytes | Path | Iterator[bytes]) -> None:
        """Put an object over what is there: one made of others, or a file of which that is no copy."""
        import obstore

        with self._explained(f"write {name}"), self._bucket_exists():
            if self._shared is not None:
                self._shared.put(name, data, replace=True)
                return
            obstore.put(self._objects(make=True), name, data, chunk_size=PART, max_concurrency=4)

    def update(self, name: str, data: bytes, tag: str) -> str | None:
        """Put an object over the version that has `tag`; return the new tag, or None if the tag changed."""
        import obstore
        from obstore.exceptions import NotFoundError, PreconditionError

        try:
            with self._explained(f"write {name}"):
                if self._shared is not None:
                    self._shared.stat(name)
                return str(obstore.put(self._objects(make=True), name, data, mode={"e_tag": tag})["e_tag"])
        except (KeyError, NotFoundError, PreconditionError):
            return None

    def remove(self, name: str) -> None:
        """Remove an object, if it is there."""
        import obstore

        with self._explained(f"remove {name}"), contextlib.suppress(KeyError, FileNotFoundError):
            if self._shared is not None:
                self._shared.remove(name)
                return
            obstore.delete(self._objects(), name)

    def check_writable(self, random: Callable[[int], str] = secrets.token_hex) -> None:
        """Raise InputError where nothing can be written, or where a second put would overwrite the first."""
        if not self.writable:
            raise InputError(
                f"{self} can be read, not written",
                cause="a web server takes no objects",
                next_step="push to the bucket or folder that it serves",
            )
        name = f"probe/{random(16)}"
        first = self.add(name, b"1")
        second = self.add(name, b"2")
        # who may only add leaves it
        with contextlib.suppress(ExplainedError):
            self.remove(name)
        if not first or second:
            raise InputError(
                f"{self} overwrites what is there, so it cannot be shared",
                cause="a second put of one name, which must be refused, replaced the first",
                next_step="use a service that honours conditional puts (If-None-Match), or a folder; reading "
                "from it is possible",
            )

    @contextlib.contextmanager
    def _bucket_exists(self) -> Iterator[None]:
        """What is missing where something is put is the bucket itself."""
        from obstore.exceptions import NotFoundError

        try:
            yield
        except (NotFoundError, FileNotFoundError) as error:
            raise InputError(
                f"there is no bucket at {self}",
                cause=_first_line(error),
                next_step="check the URL; a bucket is made with the tools of its cloud",
            ) from error

    @contextlib.contextmanager
    def _explained(self, action: str) -> Iterator[None]:
        """Faults of the library as errors of rocwright; a missing object is a KeyError."""
        from obstore import exceptions

        try:
            yield
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError, ExplainedError, KeyError):
            raise
        except (exceptions.NotFoundError, FileNotFoundError):
            raise KeyError(action) from None
        except (PermissionError, exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise self._refused(action, error) from error
        except (exceptions.NotSupportedError, exceptions.InvalidPathError, ValueError) as error:
            raise InputError(
                f"{self} cannot {action}",
                cause=_first_line(error),
                next_step="check the URL of the store",
            ) from error
        except (exceptions.BaseError, OSError) as error:
            # S3 tells of a removal that it refuses within an answer that is none of an error
            if "code: AccessDenied" in str(error):
                raise self._refused(action, error) from error
            raise NetworkError(
                f"{self} did not answer: could not {action}",
                cause=_first_line(error),
                next_step="run the command again when it can be reached",
            ) from error

    def _refused(self, action: str, error: Exception) -> InputError:
        return InputError(
            f"{self} does not let us {action}",
            cause=_first_line(error),
            next_step="check the credentials in the environment, and what they may do",
        )


def _without_tls(scheme: str) -> bool:
    """Whether the variable of a cloud lets its client speak without TLS, to an endpoint in the same lab."""
    import os

    name = {"s3": "AWS_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP", "gs": "GOOGLE_ALLOW_HTTP"}.get(scheme, "")
    return os.environ.get(name, "").lower() in ("1", "true", "yes")


def _first_line(error: Exception) -> str:
    """What a library says of a fault, without addresses that may have credentials in them."""
    printable = "".join(
        char if char.isprintable() else " " for char in str(error).partition("Debug source")[0]
    )
    text = " ".join(printable.split())[:300]
    return (
        " ".join(plain_url(word) if "://" in word else word for word in text.split(" ")) or "no reason given"
    )
