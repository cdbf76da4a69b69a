"""The Python package index that this machine's pip is set up for."""

from __future__ import annotations

import email
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from packaging.utils import canonicalize_name

from rocbase.errors import FetchError, NetworkError
from rocbase.files.atomic import sha256_file
from rocbase.folders.temporary import temporary_folder
from rocbase.http.address import is_same_server
from rocbase.processes import run as process
from rocbase.processes.python import python_module
from rocwright.model.steps import FilePin, IndexOrigin
from rocwright.sources import python_resolver, web
from rocwright.sources.bounded import read_whole
from rocwright.sources.mirrors import mirrors
from rocwright.sources.patience import asked, within
from rocwright.sources.pins import check_pin
from rocwright.sources.python_resolver import Interpreter, Metadata, read_requirement
from rocwright.sources.sdist import SUFFIX, Sdist, read_sdist
from rocwright.sources.session import patient
from rocwright.sources.wheel_metadata import checked_metadata, read_metadata
from rocwright.store.model import Store, verified

if TYPE_CHECKING:
    from pypi_simple import DistributionPackage, ProjectPage, PyPISimple

# How long an index may take to tell of a project.
SECONDS = 60

_SETTING = re.compile(r"^(\S+)\.([a-z-]+)='([^']+)'$", re.MULTILINE)


def index_client(endpoint: str = "") -> PyPISimple:
    from pypi_simple import PYPI_SIMPLE_ENDPOINT, PyPISimple

    if not endpoint:
        endpoints = {section: value for section, name, value in _settings() if name == "index-url"}
        # the environment goes before pip's files
        endpoint = endpoints.get(":env:") or next(reversed(endpoints.values()), PYPI_SIMPLE_ENDPOINT)
    client = PyPISimple(endpoint=mirrors().at(endpoint))
    patient(client.s)
    return client


def _settings() -> list[tuple[str, str, str]]:
    """pip's own settings: section, name, value."""
    listed = process.run(python_module("pip", "config", "list"), timeout=60)
    return _SETTING.findall(listed.stdout)


class _NoProjectError(FetchError):
    """An index that answered, and does not have the project."""


def project_page(
    client: PyPISimple, project: str, seconds: float = SECONDS, received: Callable[[int], object] = int
) -> ProjectPage:
    """What the index tells of a project; `received` hears its bytes. Raises FetchError, NetworkError."""
    import requests
    from pypi_simple import ProjectPage
    from pypi_simple.errors import UnsupportedRepoVersionError

    headers = {"Accept": client.accept}
    try:
        address, seconds = client.get_project_url(project), within(seconds)
        until = time.monotonic() + seconds
        with (
            asked(address),
            _silent_told(),
            client.s.get(address, headers=headers, timeout=seconds, stream=True) as answer,
        ):
            web.check_redirects(address, answer, address)
            if answer.status_code == requests.codes.not_found:
                raise _NoProjectError(
                    f"the package index has no project {project}",
                    cause="the name is wrong, or pip is configured for another index",
                    next_step="correct the name in the recipe, or the index (pip config list)",
                )
            answer.raise_for_status()
            body = read_whole(answer, max(until - time.monotonic(), 0.1))
            received(len(body))
        if answer.headers.get("Content-Type", "").partition(";")[0].strip().endswith("+json"):
            return ProjectPage.from_json_data(json.loads(body), answer.url)
        return ProjectPage.from_html(project=project, html=body, base_url=answer.url)
    except (UnsupportedRepoVersionError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise NetworkError(
            f"the package index's page of {project} cannot be read",
            cause=f"{type(error).__name__}: {error}"[:500],
            next_step="check pip's settings (pip config list): the address may be a login page "
            "instead of an index",
        ) from error


@contextmanager
def _silent_told() -> Iterator[None]:
    import requests

    try:
        yield
    except requests.RequestException as error:
        raise _unreachable(error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A file of a project as the index tells of it now; `uploaded` and `yanked` where it tells that."""

    filename: str
    version: str
    sha256: str
    uploaded: datetime | None
    yanked: str | None
    requires_python: str
    wheel: bool


def the_index() -> str:
    """The address of the index that pip is set up for, or its mirror."""
    return index_client().endpoint


def at(endpoint: str) -> str:
    """Where an index is to be asked: at a mirror, or where it says."""
    return mirrors().at(endpoint)


def published(project: str, endpoint: str, seconds: float) -> tuple[Published, ...]:
    """Every file that the index at `endpoint` has of a project. Raises FetchError, NetworkError."""
    from pypi_simple import PyPISimple

    with PyPISimple(endpoint=endpoint) as client:
        packages = project_page(client, project, seconds).packages
    return tuple(
        Published(
            filename=package.filename,
            version=package.version,
            sha256=package.digests.get("sha256", ""),
            uploaded=package.upload_time,
            yanked=(package.yanked_reason or "") if package.is_yanked else None,
            requires_python=package.requires_python or "",
            wheel=package.package_type == "wheel",
        )
        for package in packages
        if package.version and package.package_type in ("wheel", "sdist")
    )


def find_sdist(project: str, version: str, store: Store) -> FilePin:
    """The source distribution of a release, with its hash and size. Raises FetchError, NetworkError.

    An index that does not tell sizes makes it be downloaded at once, into the store.
    """
    client = index_client()
    for package in project_page(client, project).packages:
        if package.package_type == "sdist" and package.version == version:
            if "sha256" not in package.digests:
                break
            return _pin(package, "", client, store)
    raise FetchError(
        f"the package index has no source distribution of {project} {version} with a sha256",
        cause="the release has wheels only, was withdrawn, or the index does not give hashes",
        next_step="name another source in the recipe",
    )


def download(pin: FilePin, folder: Path) -> None:
    """Download one file of a project into `folder`; the caller checks the hash.

    Raises FetchError, NetworkError.
    """
    assert isinstance(pin.origin, IndexOrigin)
    client = index_client(pin.origin.index)
    page = project_page(client, pin.origin.project)
    package = next((candidate for candidate in page.packages if candidate.filename == pin.filename), None)
    if package is None:
        raise FetchError(
            f"the package index no longer has {pin.filename}",
            cause="the release was withdrawn",
            next_step="rocwright lock chooses from what the index has now",
        )
    _fetch(package, folder / pin.filename, client, pin.size)


def _fetch(package: DistributionPackage, target: Path, client: PyPISimple, size: int) -> None:
    address = file_address(package.url, client)
    if address.startswith("file:"):
        web.download(package.url, target, size=size or None)
        return
    web.read(address, target, size or web.MOST_BYTES, package.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSdist:
    """A source distribution that stands where no wheel is, and what builds a wheel of it (PEP 508)."""

    pin: FilePin
    build: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The exact files that requirements resolve to."""

    wheels: tuple[FilePin, ...]
    sdists: tuple[FoundSdist, ...] = ()


def resolve(
    specs: Sequence[str],
    python: str,
    machine: str,
    store: Store,
    *,
    endpoint: str = "",
    fallback: bool = False,
    kept: Mapping[str, str] = MappingProxyType({}),
    until: datetime | None = None,
    leave: Sequence[str] = (),
) -> Resolved:
    """Return the files that `specs` (PEP 508) and all that these need resolve to, for CPython `python`.

    Wheels for Linux; of a project that publishes none, a source distribution. The index is the one that
    pip is set up for, or `endpoint`; with `fallback` what that does not have comes from pip's own, and a
    project that it has from there alone, however new the other's. Projects that are `kept` are taken in that
    version, if they are taken at all; what was uploaded after `until` is not taken. Projects to `leave`, by
    globs of their names, are not taken, and what only they require neither.
    Raises InputError for what is no requirement, ConflictError where none fit, FetchError, NetworkError.
    """
    requirements = [read_requirement(text) for text in specs]
    endpoints = (endpoint, "") if endpoint and fallback else (endpoint,)
    index = _Index({place: index_client(place) for place in endpoints}, store, until, leave)
    chosen = python_resolver.solve(requirements, index, Interpreter(python, machine), kept)
    wheels, sdists = [], []
    for package in chosen:
        pin = index.pin(package)
        if package.package_type == "wheel":
            wheels.append(pin)
        else:
            sdists.append(FoundSdist(pin=pin, build=index.sdist(package).build))
    return Resolved(
        wheels=tuple(sorted(wheels, key=lambda pin: pin.filename)),
        sdists=tuple(sorted(sdists, key=lambda sdist: sdist.pin.filename)),
    )


class _Index:
    """The projects of one or two indexes as the resolver reads them: each page and each metadata once."""

    def __init__(
        self, clients: Mapping[str, PyPISimple], store: Store, until: datetime | None, leave: Sequence[str]
    ) -> None:
        self._clients, self._store, self._until, self._leave = clients, store, until, tuple(leave)
        self._endpoints: dict[str, str] = {}
        self._packages: dict[str, Sequence[DistributionPackage]] = {}
        self._metadata: dict[str, Metadata] = {}

    def packages(self, project: str) -> Sequence[DistributionPackage]:
        if project not in self._packages:
            page, self._endpoints[project] = _first_page(self._clients, project)
            files = [package for package in page.packages if not self._is_too_young(package)]
            wheels = [package for package in files if package.package_type == "wheel"]
            self._packages[project] = files if self.leaves(project) else wheels or [*filter(_usable, files)]
        return self._packages[project]

    def leaves(self, project: str) -> bool:
        return any(fnmatchcase(project, glob) for glob in self._leave)

    def metadata(self, package: DistributionPackage) -> Metadata:
        if package.filename not in self._metadata:
            self._metadata[package.filename] = self._read_metadata(package)
        return self._metadata[package.filename]

    def pin(self, package: DistributionPackage) -> FilePin:
        """Return a file as a pin; one whose hash or size the index does not give is fetched to the store."""
        endpoint = self._endpoints[canonicalize_name(package.project or "")]
        return _pin(package, endpoint, self._clients[endpoint], self._store)

    def sdist(self, package: DistributionPackage) -> Sdist:
        """Return the metadata of a source distribution, which is in the store from then on."""
        sdist = read_sdist(self._stored(package), package.filename)
        if sdist.name != canonicalize_name(package.project or ""):
            raise FetchError(
                f"{package.filename} is named {sdist.name or 'nothing'} in its own metadata",
                cause="the index lists it under another name",
                next_step="use another version of it in the recipe",
            )
        return sdist

    def _stored(self, package: DistributionPackage) -> Path:
        pin = self.pin(package)
        if not self._store.has(pin.sha256, pin.size):
            endpoint = self._endpoints[canonicalize_name(package.project or "")]
            _put(package, endpoint, self._clients[endpoint], self._store)
        return verified(self._store, pin.sha256)

    def _is_too_young(self, package: DistributionPackage) -> bool:
        day = package.upload_time
        return self._until is not None and day is not None and day > self._until

    def _read_metadata(self, package: DistributionPackage) -> Metadata:
        if package.package_type != "wheel":
            return Metadata(requires=self.sdist(package).requires)
        address = file_address(package.url, *self._clients.values())
        # a mirror of files need not have the metadata beside them
        if package.has_metadata and address == package.url:
            text = checked_metadata(web.read_bytes(package.metadata_url, SECONDS), package)
        else:
            text = read_metadata(self._stored(package), package.filename)
        requires = email.message_from_bytes(text).get_all("Requires-Dist", [])
        return Metadata(requires=tuple(map(str, requires)))


def _usable(package: DistributionPackage) -> bool:
    sdist = package.package_type == "sdist" and package.filename.endswith(SUFFIX)
    return sdist and "sha256" in package.digests


def _first_page(clients: Mapping[str, PyPISimple], project: str) -> tuple[ProjectPage, str]:
    """What the first index that has a project tells of it, and which that is. An index that is silent is not
    passed over: another's project of that name may be a stranger's. Raises FetchError, NetworkError."""
    *first, last = clients
    for endpoint in first:
        with suppress(_NoProjectError):
            return project_page(clients[endpoint], project), endpoint
    return project_page(clients[last], project), last


def _pin(package: DistributionPackage, endpoint: str, client: PyPISimple, store: Store) -> FilePin:
    """Return a file of an index as a pin, fetched to the store if the index gives no hash or no size."""
    sha256, size = package.digests.get("sha256", ""), package.size or 0
    if sha256 and size:
        return FilePin(filename=package.filename, sha256=sha256, size=size, origin=_origin(package, endpoint))
    return _put(package, endpoint, client, store)


def _origin(package: DistributionPackage, endpoint: str) -> IndexOrigin:
    project = canonicalize_name(package.project or "")
    return IndexOrigin(project=project, version=str(package.version), index=endpoint)


def _put(package: DistributionPackage, endpoint: str, client: PyPISimple, store: Store) -> FilePin:
    """Fetch a file to the store and return its pin. Raises FetchError if it has not the hash of the index."""
    with temporary_folder("index") as folder:
        path = Path(folder) / "file"
        _fetch(package, path, client, package.size or 0)
        sha256, size = package.digests.get("sha256") or sha256_file(path), path.stat().st_size
        pin = FilePin(filename=package.filename, sha256=sha256, size=size, origin=_origin(package, endpoint))
        check_pin(path, pin)
        store.put_file(path, move=True)
    return pin


def file_address(url: str, *clients: PyPISimple) -> str:
    """Where a file of an index is to be had: at a mirror, or where it says; with the index's own login."""
    if not url.startswith(("https://", "http://")):
        raise FetchError(
            f"the package index names {url[:200]!r} as the address of a file",
            cause="only https and http addresses are followed, no file of this machine",
            next_step="use another index (pip config list); if the folder is yours, name it as a mirror in "
            "config.toml",
        )
    address = mirrors().at(url)
    if address.startswith("/"):
        return Path(address).as_uri()
    file = urlsplit(address)
    for client in clients:
        login, _, host = urlsplit(client.endpoint).netloc.rpartition("@")
        if login and is_same_server(address, client.endpoint):
            return file._replace(netloc=f"{login}@{host}").geturl()
    return address


def _unreachable(error: Exception) -> NetworkError:
    return NetworkError(
        "the package index does not answer",
        cause=type(error).__name__,
        next_step="check the network and pip's settings (pip config list), then try again",
    )
