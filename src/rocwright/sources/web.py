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
from rocwright.store.model import Store, verified

if TYPE_CHECKING:
    import requests

# How long a host may be silent.
SECONDS = 60

# What is read at once, and lost at most where a line breaks.
READ = 64 * 1024

# Of a Content-Length: Python refuses to convert thousands.
_MOST_DIGITS = 20

# What is read of a file whose size nobody knows: TheRock's archives take some 10 GiB.
MOST_BYTES = 64 * 1024**3


def find_file(address: FileAddress, store: Store, locked: str = "") -> FilePin:
    """The exact file at an address, in the store.

    `locked` is its sha256 where an earlier lock has seen it. What the store has of it already is not fetched
    again. Raises FetchError where it is not what the catalog says, NetworkError.
    """
    sha256 = address.sha256 or locked
    origin = ArchiveOrigin(url=address.url)
    if sha256 and store.has(sha256):
        size = verified(store, sha256).stat().st_size
        return FilePin(filename=address.filename, sha256=sha256, size=size, origin=origin)
    with temporary_folder("web") as folder:
        path = Path(folder) / address.filename
        download(address.url, path)
        pin = FilePin(filename=path.name, sha256=sha256_file(path), size=path.stat().st_size, origin=origin)
        _check(address, path, pin)
        store.put_file(path, move=True)
    return pin


def _check(address: FileAddress, path: Path, pin: FilePin) -> None:
    with path.open("rb") as file:
        sha512 = hashlib.file_digest(file, "sha512").hexdigest() if address.sha512 else ""
    if address.sha256 not in ("", pin.sha256) or address.sha512 != sha512:
        kind, expected, is_ = (
            ("sha256", address.sha256, pin.sha256)
            if address.sha256 not in ("", pin.sha256)
            else ("sha512", address.sha512, sha512)
        )
        raise FetchError(
            f"{path.name} does not match the catalog",
            cause=f"its {kind} is {is_[:16]}..., the catalog says {expected[:16]}...",
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
    address = mirrors().at(url)
    if address.startswith(("/", "file:")):
        return _look_here(Path(unquote(urlsplit(address).path) if address.startswith("file:") else address))
    with asked(address):
        return _look_there(address, url, within(seconds))


def _look_there(address: str, url: str, seconds: float) -> Standing:
    import requests

    headers = {"Accept-Encoding": "identity"}
    try:
        with single() as session:
            answer = session.head(address, headers=headers, allow_redirects=True, timeout=seconds)
            if answer.status_code in (requests.codes.method_not_allowed, requests.codes.not_implemented):
                with session.get(address, headers=headers, stream=True, timeout=seconds) as answer:
                    pass
        _check_answer(address, answer, url)
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
    status = path.stat()
    return Standing(there=True, size=status.st_size, modified=datetime.fromtimestamp(status.st_mtime, UTC))


def read_page(url: str, seconds: float) -> str:
    """The text of a page, such as a list of files. Raises FetchError, NetworkError."""
    return read_bytes(url, seconds).decode(errors="replace")


def read_bytes(url: str, seconds: float, most: int = MOST_PAGE) -> bytes:
    """A page as it is, of at most so many bytes. Raises FetchError, NetworkError."""
    import requests

    address, seconds = mirrors().at(url), within(seconds)
    until = time.monotonic() + seconds
    with asked(address):
        try:
            with single() as session, session.get(address, stream=True, timeout=seconds) as answer:
                _check_answer(address, answer, url)
                return read_whole(answer, max(until - time.monotonic(), 0.1), most)
        except requests.RequestException as error:
            raise _silent(url, type(error).__name__) from error


def download(url: str, target: Path, *, size: int | None = None) -> None:
    """Bring the file at `url`, or where a mirror has it, to `target`; no more than `size` bytes, if known.

    Raises FetchError where it is not there or is too long, NetworkError where the host does not answer.
    """
    address = mirrors().at(url)
    if address.startswith(("/", "file:")):
        _copy(Path(unquote(urlsplit(address).path) if address.startswith("file:") else address), target, url)
        return
    read(address, target, MOST_BYTES if size is None else size, url)


def read(address: str, target: Path, most: int, url: str) -> None:
    """Bring at most `most` bytes from `address` to `target`, taken up again where the line breaks.

    Messages name `url`: `address` may hold a login. Raises FetchError, NetworkError.
    """
    import requests
    from urllib3.exceptions import MaxRetryError, ProtocolError

    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    retry = retries()
    with patient(requests.Session()) as session:
        while True:
            try:
                _read_on(session, address, part, most, url)
                break
            except BrokenOffError as error:
                try:
                    retry = retry.increment("GET", url, error=ProtocolError(error.cause))
                except MaxRetryError:
                    raise error from None
            retry.sleep()
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


def _read_on(session: requests.Session, address: str, part: Path, limit: int, url: str) -> None:
    """Read what is missing of a file, from the byte on that is not there yet."""
    import requests

    have = part.stat().st_size if part.exists() else 0
    # the bytes of the file itself: a host that packs what it sends would give others
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with asked(address):
        try:
            answer = session.get(address, headers=headers, stream=True, timeout=within(SECONDS))
        except requests.RequestException as error:
            raise _silent(url, type(error).__name__) from error
    with answer:
        if have and answer.status_code == requests.codes.range_not_satisfiable:
            part.unlink()
            raise _silent(url, "the download cannot be resumed", BrokenOffError)
        _check_answer(address, answer, url)
        resumed = answer.status_code == requests.codes.partial_content
        expected = _size(answer.headers.get("Content-Length", ""))
        read = have = have if resumed else 0
        try:
            with part.open("ab" if resumed else "wb") as file:
                for chunk in pieces(answer):
                    read += len(chunk)
                    if read > limit:
                        raise _too_long(url, limit)
                    file.write(chunk)
        except requests.RequestException as error:
            raise _silent(url, type(error).__name__, BrokenOffError) from error
    if expected is not None and read - have != expected:
        raise _silent(url, f"the answer ended after {read - have} of {expected} bytes", BrokenOffError)


def _check_answer(address: str, answer: requests.Response, url: str) -> None:
    check_redirects(address, answer, url)
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


def check_redirects(address: str, answer: requests.Response, url: str) -> None:
    """Raises FetchError where what was asked for over TLS came another way, be it for one redirect."""
    plain = [response.url for response in (*answer.history, answer) if not response.url.startswith("https:")]
    if address.startswith("https:") and plain:
        raise FetchError(
            f"{url} redirects to an unencrypted address",
            cause=f"it was redirected to {plain[0][:200]}",
            next_step="use an https address in the recipe, or for the package index in pip's settings",
            subject=url,
        )


def _too_long(url: str, limit: int) -> ExplainedError:
    return FetchError(
        f"{filename_of(url)} is larger than expected",
        cause=f"more than {limit} bytes were received",
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
