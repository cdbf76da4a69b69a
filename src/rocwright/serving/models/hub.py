"""Models of a hub, by huggingface_hub: who may read what, which bytes they are; brought once, taken up again.

huggingface_hub 2 removes what came of a file when a download breaks off, so what it has brought lies here:
in a part of its own name, which the next try goes on with. Tokens and the hub's address are found where that
library finds them (HF_TOKEN, `hf auth login`, HF_ENDPOINT); none is ever written into a message.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rocbase.errors import ExplainedError, FetchError, InputError, OutOfDiskError
from rocbase.files.atomic import CHUNK, sha256_file, write_atomic
from rocbase.http.address import is_same_server, split
from rocbase.units import size
from rocwright.execution.progress import Progress
from rocwright.plugins import install_command
from rocwright.serving.models.address import ModelAddress, is_safe
from rocwright.serving.models.bounded import OF_A_FILE, bound_answers
from rocwright.serving.models.told import HubPlace, told

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer
    from huggingface_hub import HfApi

import time

from rocbase.units import duration
from rocwright.execution.progress import RunningStep

# Bytes that stay free on a disk.
SPARE = 256 * 1024**2

MOST_FILES = 10_000
_SHA256, _SHA1 = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Brought:
    """A file that lies here; `sha256` is None for small files that the hub names otherwise."""

    path: Path
    sha256: str | None


class Bounded(io.BufferedRandom):
    """A file of at most `limit` bytes: a server may send more than it said, without end."""

    def __init__(self, path: Path, limit: int) -> None:
        super().__init__(io.FileIO(path, "r+"))
        self._limit = limit

    def write(self, data: Buffer) -> int:
        if self.tell() + memoryview(data).nbytes > self._limit:
            raise FetchError(
                f"the hub sends more than the {size(self._limit)} that it said",
                cause="its answer is damaged, or was made to fill this disk",
                next_step="try again; if it happens again, check HF_ENDPOINT: it must name a hub",
            )
        return super().write(data)


class Hub:
    """The hub that this user's settings name, and the folder where what it gave lies."""

    def __init__(self, folder: Path, say: Callable[[str], None], progress: Progress) -> None:
        self.folder, self._say, self._progress = folder, say, progress

    def known_commit(self, address: ModelAddress) -> str:
        """The commit of a revision that was asked for before; empty where none was."""
        if address.is_commit:
            return address.revision
        try:
            commit = self._reference(address).read_text()
        except OSError:
            return ""
        return commit if _SHA1.fullmatch(commit) else ""

    def place(self, address: ModelAddress, commit: str, file: str = "") -> Path:
        """Where a file of a repository lies here."""
        return self._repository(address) / commit / (file or address.file)

    def files(self, address: ModelAddress) -> tuple[str, list[str]]:
        """The commit that a revision names now, and the names of its files. Raises what `told` tells."""
        with self._asking(address) as api:
            info = api.model_info(address.repository, revision=address.revision)
        commit, names = info.sha or "", [sibling.rfilename for sibling in info.siblings or ()]
        if not _SHA1.fullmatch(commit) or len(names) > MOST_FILES:
            raise FetchError(
                f"what the hub says of {address.repository} cannot be",
                cause="it has no commit, or more files than any model",
                next_step="check HF_ENDPOINT: it must name a hub",
            )
        return commit, [name for name in names if is_safe(name)]

    def remember(self, address: ModelAddress, commit: str) -> None:
        """Keep which commit a revision was, so that the same is served tomorrow, without asking."""
        if not address.is_commit:
            write_atomic(self._reference(address), commit)

    def bring(self, address: ModelAddress, commit: str, file: str) -> Brought:
        """A file of a commit, whole and checked.

        Raises FetchError, InputError, NetworkError, OutOfDiskError.
        """
        from filelock import FileLock

        path = self.place(address, commit, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._repository(address) / ".lock"):
            if not path.is_file():
                self._download(address, commit, file, path)
        return Brought(path, self._sha256(path))

    def _download(self, address: ModelAddress, commit: str, file: str, path: Path) -> None:
        from huggingface_hub import get_hf_file_metadata, hf_hub_url
        from huggingface_hub.file_download import http_get
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

        name = file.rpartition("/")[2]
        with self._asking(address, file) as api:
            url = hf_hub_url(address.repository, file, revision=commit, endpoint=api.endpoint)
            metadata = get_hf_file_metadata(url, endpoint=api.endpoint)
            etag, length = metadata.etag or "", metadata.size
            if not (_SHA256.fullmatch(etag) or _SHA1.fullmatch(etag)) or length is None:
                raise FetchError(
                    f"the hub does not say what {name} is",
                    cause="its answer has no ETag or no length",
                    next_step="check HF_ENDPOINT: it must name a hub",
                )
            part = self._repository(address) / f".{etag}.part"
            part.touch()
            have = part.stat().st_size
            if have > length:
                os.truncate(part, have := 0)
            _check_room(part, length - have, name)
            self._say(
                f"bringing {name} ({size(length)})" + (f", {size(have)} of it are here" if have else "")
            )
            headers = build_hf_headers() | dict([OF_A_FILE])
            if not is_same_server(metadata.location, url):
                headers.pop("authorization", None)  # signed addresses of other hosts need no token
            with Bounded(part, length) as out:
                out.seek(have)
                with bar_for(self._progress, name) as bar:
                    http_get(
                        metadata.location,
                        out,
                        resume_size=have,
                        headers=headers,
                        expected_size=length,
                        tqdm_class=bar,
                    )
        _check(part, etag, name)
        write_mark(path, part, etag)

    def _sha256(self, path: Path) -> str | None:
        mark = path.with_name(f".{path.name}.sha256")
        try:
            digest = mark.read_text()
        except OSError:
            return sha256_file(path) if path.stat().st_size <= 64 * CHUNK else None
        return digest if _SHA256.fullmatch(digest) else None

    def _repository(self, address: ModelAddress) -> Path:
        return self.folder / address.repository.replace("/", "--")

    def _reference(self, address: ModelAddress) -> Path:
        return self._repository(address) / "revisions" / address.revision

    @contextmanager
    def _asking(self, address: ModelAddress, file: str = "") -> Iterator[HfApi]:
        """The hub's library, whose failures come out as ours."""
        endpoint = os.environ.get("HF_ENDPOINT") or None
        if endpoint:
            split(endpoint, "HF_ENDPOINT: ")  # the library fails on it while it is imported
        try:
            import huggingface_hub
        except ImportError as error:
            raise InputError(
                "models of a hub cannot be brought: huggingface_hub is not installed",
                cause="it is an optional part of rocwright",
                next_step=f"{install_command('models')}, or name a file that you have",
            ) from error
        bound_answers()
        api = huggingface_hub.HfApi(endpoint=endpoint)
        host = urlsplit(api.endpoint).hostname or "the hub"
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        try:
            yield api
        except (ExplainedError, KeyboardInterrupt):
            raise
        except Exception as error:
            place = HubPlace(host, address.repository, file, address.revision)
            raise told(error, place, self._names(api, address)) from error

    def _names(self, api: HfApi, address: ModelAddress) -> Callable[[], list[str]]:
        def names() -> list[str]:
            info: Any = api.model_info(address.repository, revision=address.revision)
            return [sibling.rfilename for sibling in info.siblings or ()]

        return names


def write_mark(path: Path, part: Path, etag: str) -> None:
    """Put a checked part in its place, and beside it what its bytes give."""
    if _SHA256.fullmatch(etag):
        write_atomic(path.with_name(f".{path.name}.sha256"), etag)
    part.chmod(0o444)
    part.replace(path)


def _check_room(part: Path, needed: int, name: str) -> None:
    free = shutil.disk_usage(part.parent).free
    if needed + SPARE > free:
        raise OutOfDiskError(
            f"there is no room for {name}",
            cause=f"{size(needed)} are still to come, {size(free)} are free in {part.parent}",
            next_step="free some disk space (rocwright clean), or set ROCWRIGHT_HOME to a larger disk",
        )


def _check(part: Path, etag: str, name: str) -> None:
    """Raises FetchError, and removes what came, where it is not what the hub says."""
    with part.open("rb") as file:
        if _SHA256.fullmatch(etag):
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        else:  # a file of the repository itself: git's own name of its bytes
            digest = hashlib.sha1(b"blob %d\0" % part.stat().st_size, usedforsecurity=False)
            for chunk in iter(lambda: file.read(CHUNK), b""):
                digest.update(chunk)
            actual = digest.hexdigest()
    if actual != etag:
        part.unlink()
        raise FetchError(
            f"{name} is not what the hub says",
            cause=f"its hash is {actual[:16]}..., the hub says {etag[:16]}...",
            next_step="try again; if it happens again, the hub or a mirror (HF_ENDPOINT) gives other bytes: "
            "do not use them",
        )


# Seconds between two looks at how far it is.
EVERY = 0.25


@contextmanager
def bar_for(progress: Progress, name: str) -> Iterator[type[Any]]:
    """A class of bars that tell `progress` of one download."""
    running = RunningStep(name, jobs=1)
    started = time.monotonic()
    progress.started(running)
    received = [0]

    class Bar:
        def __init__(self, *_: object, total: int | None = None, initial: int = 0, **__: object) -> None:
            self.total, self.n, self._told = total, initial, 0.0

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: object) -> None: ...

        def update(self, count: float | None = 1) -> None:
            self.n += int(count or 0)
            received[0] += int(count or 0)
            timestamp = time.monotonic()
            if self.total and timestamp - self._told >= EVERY:
                self._told = timestamp
                share = min(100, 100 * self.n // self.total)
                progress.line(running, f"[{share:3d}%] {size(self.n)} of {size(self.total)}")

        def __getattr__(self, _: str) -> Any:
            return lambda *_, **__: None

    ended = "broken off"
    try:
        yield Bar
        seconds = time.monotonic() - started
        ended = f"{size(received[0])} in {duration(seconds)}"
    finally:
        progress.ended(running, ended)
