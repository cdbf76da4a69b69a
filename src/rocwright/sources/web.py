"""Files at an address of the web: brought once, whole or not at all, taken up again where a line breaks."""

from __future__ import annotations

import hashlib
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rocbase.errors import ExplainedError, FetchError, NetworkError
from rocbase.files.atomic import sha256_file
from rocbase.folders.temporary import temporary_folder
from rocwright.catalog.address import FileAddress, filename_of
from rocwright.model.steps import ArchiveOrigin, FilePin
from rocwright.sources.bounded import MOST_PAGE, pieces, read_whole
from rocwright.sources.mirrors import mirrors
from rocwright.sources.patience import asked, within
from rocwright.sources.session import patient, retries, single
from rocwright.store.model import Store

if TYPE_CHECKING:
    import requests

SECONDS = 60
"""How long a host may be silent."""

READ = 64 * 1024
"""What is read at once, and lost at most where a line breaks."""

_MOST_DIGITS = 20
"""Of a Content-Length: Python refuses to convert thousands."""

MOST_BYTES = 64 * 1024**3
"""What is read of a file whose size nobody knows: TheRock's archives take some 10 GiB."""


def find_file(address: FileAddress, store: Store, known: str = "") -> FilePin:
    """The exact file at an address, in the store.

    `known` is its sha256 where an earlier lock has seen it. What the store has of it already is not fetched
    again. Raises FetchError where it is not what the catalog says, NetworkError.
    """
    sha256 = address.sha256 or known
    origin = ArchiveOrigin(url=address.url)
    if sha256 and store.has(sha256):
        size = store.verified(sha256).stat().st_size
        return FilePin(filename=address.filename, sha256=sha256, size=size, origin=origin)
    with temporary_folder("web") as folder:
        path = Path(folder) / address.filename
        download(address.url, path)
        found = FilePin(filename=path.name, sha256=sha256_file(path), size=path.stat().st_size, origin=origin)
        _check(address, path, found)
        store.put_file(path, move=True)
    return found


def _check(address: FileAddress, path: Path, found: FilePin) -> None:
    with path.open("rb") as file:
        sha512 = hashlib.file_digest(file, "sha512").hexdigest() if address.sha512 else ""
    if address.sha256 not in ("", found.sha256) or address.sha512 != sha512:
        kind, said, is_ = (
            ("sha256", address.sha256, found.sha256)
            if address.sha256 not in ("", found.sha256)
            else ("sha512", address.sha512, sha512)
        )
        raise FetchError(
            f"{path.name} does not match the catalog",
            cause=f"its {kind} is {is_[:16]}..., the catalog says {said[:16]}...",
            next_step="the file was changed upstream: find out why before you trust it, then correct "
            "the hash in the recipe",
            subject=address.url,
        )


def fetch_pin(pin: FilePin, folder: Path) -> None:
    """Bring the file of a pin into `folder`; the caller checks its hash. Raises FetchError, NetworkError."""
    assert isinstance(pin.origin, ArchiveOrigin)
    download(pin.origin.url, folder / pin.filename, size=pin.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a host says of a file without giving it: its size in bytes, when it was written, its mark (ETag);
    each empty where the host does not say."""

    there: bool
    size: int | None = None
    modified: datetime | None = None
    mark: str = ""


def look(url: str, seconds: float) -> Standing:
    """How the file at an address, or at its mirror, stands now. Raises FetchError, NetworkError."""
    where = mirrors().at(url)
    if where.startswith(("/", "file:")):
        return _look_here(Path(unquote(urlsplit(where).path) if where.startswith("file:") else where))
    with asked(where):
        return _look_there(where, url, within(seconds))


def _look_there(where: str, url: str, seconds: float) -> Standing:
    import requests

    headers = {"Accept-Encoding": "identity"}
    try:
        with single() as session:
            answer = session.head(where, headers=headers, allow_redirects=True, timeout=seconds)
            if answer.status_code in (requests.codes.method_not_allowed, requests.codes.not_implemented):
                with session.get(where, headers=headers, stream=True, timeout=seconds) as answer:
                    pass
        _check_answer(where, answer, url)
    except requests.RequestException as error:
        raise _silent(url, type(error).__name__) from error
    except FetchError as error:
        if answer.status_code not in (404, 410):
            raise error
        return Standing(there=False)
    length, modified = answer.headers.get("Content-Length", ""), answer.headers.get("Last-Modified", "")
    return Standing(
        there=True,
        size=_size(length),
        modified=_day(modified),
        mark=answer.headers.get("ETag", ""),
    )


def _size(text: str) -> int | None:
    """Return what a Content-Length says, None for what is no size."""
    return int(text) if text.isdecimal() and len(text) < _MOST_DIGITS else None


def _day(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None


def _look_here(path: Path) -> Standing:
    if not path.is_file():
        return Standing(there=False)
    told = path.stat()
    return Standing(there=True, size=told.st_size, modified=datetime.fromtimestamp(told.st_mtime, UTC))


def read_page(url: str, seconds: float) -> str:
    """The text of a page, such as a list of files. Raises FetchError, NetworkError."""
    return read_bytes(url, seconds).decode(errors="replace")


def read_bytes(url: str, seconds: float, most: int = MOST_PAGE) -> bytes:
    """A page as it is, of at most so many bytes. Raises FetchError, NetworkError."""
    import requests

    where, seconds = mirrors().at(url), within(seconds)
    until = time.monotonic() + seconds
    with asked(where):
        try:
            with single() as session, session.get(where, stream=True, timeout=seconds) as answer:
                _check_answer(where, answer, url)
                return read_whole(answer, max(until - time.monotonic(), 0.1), most)
        except requests.RequestException as error:
            raise _silent(url, type(error).__name__) from error


def download(url: str, target: Path, *, size: int | None = None) -> None:
    """Bring the file at `url`, or where a mirror has it, to `target`; no more than `size` bytes, if known.

    Raises FetchError where it is not there or is too long, NetworkError where the host does not answer.
    """
    where = mirrors().at(url)
    if where.startswith(("/", "file:")):
        _copy(Path(unquote(urlsplit(where).path) if where.startswith("file:") else where), target, url)
        return
    read(where, target, MOST_BYTES if size is None else size, url)


def read(where: str, target: Path, most: int, url: str) -> None:
    """Bring at most `most` bytes from `where` to `target`, taken up again where the line breaks.

    Messages name `url`: `where` may hold a login. Raises FetchError, NetworkError.
    """
    import requests
    from urllib3.exceptions import MaxRetryError, ProtocolError

    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    left = retries()
    with patient(requests.Session()) as session:
        while True:
            try:
                _read_on(session, where, part, most, url)
                break
            except BrokenOffError as error:
                try:
                    left = left.increment("GET", url, error=ProtocolError(error.cause))
                except MaxRetryError:
                    raise error from None
            left.sleep()
    part.replace(target)


class BrokenOffError(NetworkError):
    """The host began to answer, and did not end: what came is kept, and taken up."""


def _copy(source: Path, target: Path, url: str) -> None:
    if not source.is_file():
        raise FetchError(
            f"the mirror has no {filename_of(url)}",
            cause=f"{source} does not exist",
            next_step="add the file to the mirror, or correct [mirrors] in config.toml",
            subject=url,
        )
    shutil.copyfile(source, target)


def _read_on(session: requests.Session, where: str, part: Path, most: int, url: str) -> None:
    """Read what is missing of a file, from the byte on that is not there yet."""
    import requests

    have = part.stat().st_size if part.exists() else 0
    # the bytes of the file itself: a host that packs what it sends would give others
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with asked(where):
        try:
            answer = session.get(where, headers=headers, stream=True, timeout=within(SECONDS))
        except requests.RequestException as error:
            raise _silent(url, type(error).__name__) from error
    with answer:
        if have and answer.status_code == requests.codes.range_not_satisfiable:
            part.unlink()
            raise _silent(url, "the download cannot be resumed", BrokenOffError)
        _check_answer(where, answer, url)
        resumed = answer.status_code == requests.codes.partial_content
        wanted = _size(answer.headers.get("Content-Length", ""))
        read = have = have if resumed else 0
        try:
            with part.open("ab" if resumed else "wb") as file:
                for chunk in pieces(answer):
                    read += len(chunk)
                    if read > most:
                        raise _too_long(url, most)
                    file.write(chunk)
        except requests.RequestException as error:
            raise _silent(url, type(error).__name__, BrokenOffError) from error
    if wanted is not None and read - have != wanted:
        raise _silent(url, f"the answer ended after {read - have} of {wanted} bytes", BrokenOffError)


def _check_answer(where: str, answer: requests.Response, url: str) -> None:
    check_redirects(where, answer, url)
    if answer.status_code in (404, 410):
        raise FetchError(
            f"there is no file at {url}",
            cause=f"the server answered with status {answer.status_code}",
            next_step="it was removed or renamed: correct the address in the recipe, or add a mirror "
            "that has it",
            subject=url,
        )
    if not answer.ok:
        wait = answer.headers.get("Retry-After", "")[:40]
        asks = f", and asks to wait (Retry-After: {wait})" if wait else ""
        raise _silent(url, f"the server answered with status {answer.status_code}{asks}")


def check_redirects(where: str, answer: requests.Response, url: str) -> None:
    """Raises FetchError where what was asked for over TLS came another way, be it for one redirect."""
    plain = [one.url for one in (*answer.history, answer) if not one.url.startswith("https:")]
    if where.startswith("https:") and plain:
        raise FetchError(
            f"{url} redirects to an unencrypted address",
            cause=f"it was redirected to {plain[0][:200]}",
            next_step="use an https address in the recipe, or for the package index in pip's settings",
            subject=url,
        )


def _too_long(url: str, most: int) -> ExplainedError:
    return FetchError(
        f"{filename_of(url)} is larger than expected",
        cause=f"more than {most} bytes were received",
        next_step="try again; if it happens again, the file was changed upstream: find out why "
        "before you trust it",
        subject=url,
    )


def _silent(url: str, cause: str, kind: type[NetworkError] = NetworkError) -> NetworkError:
    return kind(
        f"{url} cannot be downloaded",
        cause=cause,
        next_step="check the network and [mirrors] in config.toml, then try again",
    )
