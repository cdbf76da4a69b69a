"""Looks into the wheels of a package index without fetching them: the list of their files, their metadata."""

from __future__ import annotations

import email
import io
import re
import struct
import threading
import time
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from rocbase.errors import CheckError, NetworkError
from rocbase.files.bounds import METADATA
from rocbase.units import size
from rocwheel.wheels.source import Budget, ByteSource
from rocwright.sources import web
from rocwright.sources.bounded import read_whole
from rocwright.sources.index import file_address, index_client, project_page
from rocwright.sources.patience import asked, within
from rocwright.sources.python_resolver import Interpreter, Metadata, best_file

if TYPE_CHECKING:
    from pypi_simple import DistributionPackage, PyPISimple

# The end of a zip, with its directory: enough for most wheels, and their metadata.
TAIL = 64 * 1024

# The directory of the largest wheel on the Python index has 24,000 files in 3 MiB.
MOST_DIRECTORY = 16 * 1024**2

# A file is held in memory: libraries for one release of ROCm that wheels on the Python index have take 2 MiB.
MOST_UNPACKED = 64 * 1024**2

SECONDS = 20.0

_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    LookupError,
    NotImplementedError,
)


class Allowance:
    """Bytes and seconds that looking into an index may take, for all threads together."""

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit, self._until = limit, time.monotonic() + seconds
        self._lock = threading.Lock()
        self.received = 0

    def take(self, count: int) -> None:
        """Count bytes that came."""
        with self._lock:
            self.received += count

    def check(self, count: int = 0) -> None:
        """Raise NetworkError if so many more bytes, or any more time, would be too much."""
        late = time.monotonic() > self._until
        if late or self.received + count > self._limit:
            raise NetworkError(
                "the check has used up its time" if late else f"the check has fetched {size(self._limit)}",
                cause="the list is long, or the index is slow",
                next_step="check a part of the list",
            )


class RemoteIndex:
    """The files of a package index for one interpreter. Threads may share it."""

    def __init__(self, endpoint: str, python: Interpreter, allowance: Allowance) -> None:
        self._client: PyPISimple = index_client(endpoint)
        self._python, self._allowance = python, allowance

    def packages(self, project: str) -> Sequence[DistributionPackage]:
        self._allowance.check()
        return project_page(self._client, project, SECONDS, self._allowance.take).packages

    def metadata(self, package: DistributionPackage) -> Metadata:
        return Metadata(requires=self.open(package).requires())

    def leaves(self, project: str) -> bool:
        return False

    def find(self, requirement: Requirement) -> DistributionPackage | None:
        """Return the file that an installer takes. Raises FetchError if the index has no such project."""
        return best_file(requirement, self, self._python)

    def open(self, package: DistributionPackage) -> RemoteWheel:
        """Open a wheel. Raises CheckError for a damaged one, NetworkError."""
        return RemoteWheel(_RangeSource(self._client, package, self._allowance), package.filename)


class RemoteWheel:
    """A wheel on an index. Its methods raise CheckError for a damaged one, NetworkError."""

    def __init__(self, source: ByteSource, filename: str) -> None:
        self._filename = filename
        try:
            self._zip = zipfile.ZipFile(io.BufferedReader(source, TAIL))
        except _BROKEN as error:
            raise self._damaged(error) from error

    @property
    def members(self) -> tuple[str, ...]:
        """The paths of its files."""
        return tuple(self._zip.namelist())

    def requires(self) -> tuple[str, ...]:
        """Return its requirements (PEP 508)."""
        path = next((path for path in self.members if path.endswith(".dist-info/METADATA")), "")
        text = self._read(path, METADATA) if path else b""
        return tuple(map(str, email.message_from_bytes(text).get_all("Requires-Dist", [])))

    def save(self, paths: Iterable[str], folder: Path, limit: int) -> list[Path]:
        """Write files, of `limit` packed bytes in all, to `folder` under their last names."""
        extracted: list[Path] = []
        for info in map(self._zip.getinfo, paths):
            limit -= info.compress_size
            if limit >= 0 and info.file_size <= MOST_UNPACKED:
                target = folder / str(len(extracted)) / Path(info.filename).name
                target.parent.mkdir()
                target.write_bytes(self._read(info.filename, MOST_UNPACKED))
                extracted.append(target)
        return extracted

    def _read(self, path: str, limit: int) -> bytes:
        try:
            with self._zip.open(path) as file:
                data = file.read(limit + 1)
        except _BROKEN as error:
            raise self._damaged(error) from error
        if len(data) > limit:
            raise self._damaged(ValueError(f"a file in it unpacks to more than {size(limit)}"))
        return data

    def _damaged(self, error: Exception) -> CheckError:
        return CheckError(
            f"{self._filename} on the index cannot be read as a wheel",
            cause=f"{type(error).__name__}: {error}"[:200],
            next_step="choose another version of it",
            subject=self._filename,
        )


class _RangeSource(ByteSource):
    """A file on an index, read in parts; its end is kept."""

    def __init__(self, client: PyPISimple, package: DistributionPackage, allowance: Allowance) -> None:
        self._session, self._url, self._allowance = client.s, package.url, allowance
        self._address = file_address(package.url, client)
        self._tail, length = self._fetch(f"bytes=-{TAIL}", TAIL)
        super().__init__(length, Budget.for_file(length, package.filename), package.filename)

    def _get(self, offset: int, count: int) -> bytes:
        start = self.size - len(self._tail)
        if offset >= start:
            return self._tail[offset - start : offset - start + count]
        if count > MOST_DIRECTORY:
            raise ValueError(f"it asks for {size(count)} at once")
        return self._fetch(f"bytes={offset}-{offset + count - 1}", count)[0]

    def _fetch(self, span: str, count: int) -> tuple[bytes, int]:
        """Return a part of the file, and the length of the whole."""
        import requests

        self._allowance.check(count)
        headers, seconds = {"Range": span, "Accept-Encoding": "identity"}, within(SECONDS)
        try:
            with (
                asked(self._address),
                self._session.get(self._address, headers=headers, timeout=seconds, stream=True) as answer,
            ):
                web.check_redirects(self._address, answer, self._url)
                match = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
                if answer.status_code != requests.codes.partial_content or match is None:
                    raise _whole_only(self._url)
                body = read_whole(answer, seconds, count)
        except requests.RequestException as error:
            raise _whole_only(self._url, type(error).__name__) from error
        self._allowance.take(len(body))
        return body, int(match[3])


def _whole_only(url: str, cause: str = "its server gives no parts of files") -> NetworkError:
    return NetworkError(
        f"{url[:200]} cannot be looked into",
        cause=cause,
        next_step="fetch the file, and name it: rocwright wheel check-gpu GPU FILE",
    )
