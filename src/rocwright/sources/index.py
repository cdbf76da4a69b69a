"""The Python package index that this machine's pip is set up for."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from rocwheel.errors import ConflictError, FetchError, InputError, NetworkError
from rocwheel.folders.temporary import temporary_folder
from rocwheel.processes import run as process
from rocwheel.processes.python import python_module
from rocwright.model.steps import FilePin, IndexOrigin
from rocwright.sources import web
from rocwright.sources.bounded import read_whole
from rocwright.sources.front import Front, served
from rocwright.sources.mirrors import mirrors
from rocwright.sources.patience import asked, current, with_patience, within
from rocwright.sources.pins import check_pin
from rocwright.sources.sdist import Sdist, read_sdist
from rocwright.sources.session import patient
from rocwright.store.model import Store

if TYPE_CHECKING:
    from pypi_simple import DistributionPackage, ProjectPage, PyPISimple

_GLIBC = (*(f"_2_{minor}" for minor in range(34, 16, -1)), "2014", "2010", "1")
PLATFORMS = (*(f"manylinux{one}_{{machine}}" for one in _GLIBC), "linux_{machine}")
"""Wheels for a glibc of at most 2.34, which every base of the catalog has; pip takes each name by itself."""
SECONDS = 60
"""How long an index may take to tell of a project."""

_SETTING = re.compile(r"^(\S+)\.([a-z-]+)='([^']+)'$", re.MULTILINE)
_SOURCES = ("index-url", "extra-index-url", "find-links", "no-index")
"""Where pip looks: in nothing but the one index, for nothing else is downloaded from later."""


def _client(endpoint: str = "") -> PyPISimple:
    from pypi_simple import PYPI_SIMPLE_ENDPOINT, PyPISimple

    if not endpoint:
        found = {section: value for section, name, value in _settings() if name == "index-url"}
        # the environment goes before pip's files
        endpoint = found.get(":env:") or next(reversed(found.values()), PYPI_SIMPLE_ENDPOINT)
    client = PyPISimple(endpoint=mirrors().at(endpoint))
    patient(client.s)
    return client


def _settings() -> list[tuple[str, str, str]]:
    """pip's own settings: section, name, value."""
    listed = process.run(python_module("pip", "config", "list"), timeout=60)
    return _SETTING.findall(listed.stdout)


def _environment() -> dict[str, str]:
    """pip's environment: its settings for certificates, proxies and patience, and none of where it looks."""
    near = ",".join(filter(None, [os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), "127.0.0.1"]))
    settings = {
        f"PIP_{name.upper().replace('-', '_')}": value
        for section, name, value in _settings()
        if section in ("global", "install")
    }
    env = settings | os.environ | {"PIP_CONFIG_FILE": os.devnull, "NO_PROXY": near, "no_proxy": near}
    unwanted = {f"PIP_{name.upper().replace('-', '_')}" for name in _SOURCES}
    return {name: value for name, value in env.items() if name not in unwanted}


class _NoProjectError(FetchError):
    """An index that answered, and does not have the project."""


def _page(client: PyPISimple, project: str, seconds: float = SECONDS) -> ProjectPage:
    """What the index tells of a project. Raises FetchError, NetworkError."""
    import requests
    from pypi_simple import ProjectPage
    from pypi_simple.errors import UnsupportedRepoVersionError

    headers = {"Accept": client.accept}
    try:
        where, seconds = client.get_project_url(project), within(seconds)
        until = time.monotonic() + seconds
        with (
            asked(where),
            _silent_told(),
            client.s.get(where, headers=headers, timeout=seconds, stream=True) as answer,
        ):
            web.check_redirects(where, answer, where)
            if answer.status_code == requests.codes.not_found:
                raise _NoProjectError(
                    f"the package index has no project {project}",
                    cause="the name is wrong, or pip is configured for another index",
                    next_step="correct the name in the recipe, or the index (pip config list)",
                )
            answer.raise_for_status()
            body = read_whole(answer, max(until - time.monotonic(), 0.1))
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
    return _client().endpoint


def at(endpoint: str) -> str:
    """Where an index is to be asked: at a mirror, or where it says."""
    return mirrors().at(endpoint)


def published(project: str, endpoint: str, seconds: float) -> tuple[Published, ...]:
    """Every file that the index at `endpoint` has of a project. Raises FetchError, NetworkError."""
    from pypi_simple import PyPISimple

    with PyPISimple(endpoint=endpoint) as client:
        packages = _page(client, project, seconds).packages
    return tuple(
        Published(
            filename=one.filename,
            version=one.version,
            sha256=one.digests.get("sha256", ""),
            uploaded=one.upload_time,
            yanked=(one.yanked_reason or "") if one.is_yanked else None,
            requires_python=one.requires_python or "",
            wheel=one.package_type == "wheel",
        )
        for one in packages
        if one.version and one.package_type in ("wheel", "sdist")
    )


def find_sdist(project: str, version: str, store: Store) -> FilePin:
    """The source distribution of a release, with its hash and size. Raises FetchError, NetworkError.

    An index that does not tell sizes makes it be downloaded at once, into the store.
    """
    for package in _page(_client(), project).packages:
        if package.package_type == "sdist" and package.version == version:
            if "sha256" not in package.digests:
                break
            pin = FilePin(
                filename=package.filename,
                sha256=package.digests["sha256"],
                size=package.size or 0,
                origin=IndexOrigin(project=project, version=version),
            )
            return pin if package.size else _measured(pin, store)
    raise FetchError(
        f"the package index has no source distribution of {project} {version} with a sha256",
        cause="the release has wheels only, was withdrawn, or the index does not give hashes",
        next_step="name another source in the recipe",
    )


def _measured(pin: FilePin, store: Store) -> FilePin:
    with temporary_folder("index") as folder:
        download(pin, Path(folder))
        path = Path(folder) / pin.filename
        measured = pin.model_copy(update={"size": path.stat().st_size})
        check_pin(path, measured)
        store.put_file(path)
    return measured


def download(pin: FilePin, folder: Path) -> None:
    """Download one file of a project into `folder`; the caller checks the hash.

    Raises FetchError, NetworkError.
    """
    assert isinstance(pin.origin, IndexOrigin)
    client = _client(pin.origin.index)
    page = _page(client, pin.origin.project)
    package = next((one for one in page.packages if one.filename == pin.filename), None)
    if package is None:
        raise FetchError(
            f"the package index no longer has {pin.filename}",
            cause="the release was withdrawn",
            next_step="rocwright lock chooses from what the index has now",
        )
    where = _at(package.url, client)
    if where.startswith("file:"):
        web.download(package.url, folder / pin.filename, size=pin.size or None)
        return
    web.read(where, folder / pin.filename, pin.size or web.MOST_BYTES, package.url)


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
    wanted: Sequence[str],
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
    """The files that `wanted` (PEP 508) and all that these need resolve to, for CPython `python` on Linux.

    Wheels; of a project that publishes none, a source distribution. pip resolves, at the index that it is set
    up for, or at `endpoint`; with `fallback` what that does not have comes from pip's own, and a project that
    it has from there alone, however new the other's. Markers are those of this interpreter. Projects that are
    `kept` are taken in that version, if they are taken at all; what was uploaded after `until` is not taken.
    Projects to `leave`, by globs of their names, are not taken, and what only they require neither.
    Raises InputError for what is no requirement, ConflictError where none fit, NetworkError.
    """
    requirements = [_requirement(one) for one in wanted]
    endpoints = (endpoint, "") if endpoint and fallback else (endpoint,)
    clients = {one: _client(one) for one in endpoints}
    origins: dict[str, str] = {}  # which index has a project

    def read(package: DistributionPackage) -> Sdist:
        return _read_sdist(package, store, origins[canonicalize_name(package.project or "")])

    patience = current()

    def page(project: str) -> ProjectPage:
        # asked by pip, in the threads of a server
        with with_patience(patience):
            found, origins[canonicalize_name(project)] = _first_page(clients, project)
        return found

    front = Front(page, lambda url: _at(url, *clients.values()), read, until, leave)
    with temporary_folder("index") as folder, served(front) as address:
        report = Path(folder) / "report.json"
        words = python_module("pip", "install", "--dry-run", "--ignore-installed")
        words += ["--disable-pip-version-check", "--only-binary", ":all:", "--implementation", "cp"]
        words += ["--python-version", python, "--target", str(folder), "--report", str(report)]
        words += [word for tag in PLATFORMS for word in ("--platform", tag.format(machine=machine))]
        words += ["--index-url", address]
        if kept:
            bounds = Path(folder) / "kept.txt"
            bounds.write_text("".join(f"{name}=={version}\n" for name, version in kept.items()))
            words += ["--constraint", str(bounds)]
        done = process.run([*words, "--", *requirements], timeout=900, env=_environment())
        if not done.ok:
            # pip does not tell an index that is silent from one that has no such project
            raise next(iter(front.errors), _unresolved(wanted, python, done.stdout + done.stderr))
        found = json.loads(report.read_text())["install"]
    wheels, sdists = [], []
    for one in found:
        filename = unquote(urlsplit(one["download_info"]["url"]).path.rpartition("/")[2])
        project = canonicalize_name(one["metadata"]["name"])
        if filename in front.left:
            continue
        package = front.stand_ins.get(filename)
        if package is not None:
            pin = _pin(package, project, origins[project], store)
            sdists.append(FoundSdist(pin=pin, build=read(package).build))
            continue
        package = next(item for item in front.page(project).packages if item.filename == filename)
        hashed = one["download_info"]["archive_info"]["hashes"]["sha256"]
        wheels.append(_pin(package, project, origins[project], store, hashed))
    return Resolved(
        wheels=tuple(sorted(wheels, key=lambda pin: pin.filename)),
        sdists=tuple(sorted(sdists, key=lambda sdist: sdist.pin.filename)),
    )


def _first_page(clients: Mapping[str, PyPISimple], project: str) -> tuple[ProjectPage, str]:
    """What the first index that has a project tells of it, and which that is. An index that is silent is not
    passed over: another's project of that name may be a stranger's. Raises FetchError, NetworkError."""
    *first, last = clients
    for endpoint in first:
        with suppress(_NoProjectError):
            return _page(clients[endpoint], project), endpoint
    return _page(clients[last], project), last


def _pin(
    package: DistributionPackage, project: str, endpoint: str, store: Store, sha256: str = ""
) -> FilePin:
    """A file of an index as a pin; its size is what the index tells, or what the file has."""
    pin = FilePin(
        filename=package.filename,
        sha256=sha256 or package.digests["sha256"],
        size=package.size or 0,
        origin=IndexOrigin(project=project, version=str(package.version), index=endpoint),
    )
    return pin if package.size else _measured(pin, store)


def _read_sdist(package: DistributionPackage, store: Store, endpoint: str) -> Sdist:
    """What a source distribution of an index says of itself; it is in the store from then on."""
    project = canonicalize_name(package.project or "")
    pin = _pin(package, project, endpoint, store)
    if not store.has(pin.sha256, pin.size):
        _measured(pin, store)
    found = read_sdist(store.verified(pin.sha256), pin.filename)
    if found.name != project:
        raise FetchError(
            f"{pin.filename} is named {found.name or 'nothing'} in its own metadata",
            cause="the index lists it under another name",
            next_step="use another version of it in the recipe",
        )
    return replace(found, version=str(package.version))


def _at(url: str, *clients: PyPISimple) -> str:
    """Where a file of an index is to be had: at a mirror, or where it says; with the index's own login."""
    where = mirrors().at(url)
    if where.startswith("/"):
        return Path(where).as_uri()
    file = urlsplit(where)
    for client in clients:
        login, _, host = urlsplit(client.endpoint).netloc.rpartition("@")
        if login and file.netloc == host:
            return file._replace(netloc=f"{login}@{host}").geturl()
    return where


def _requirement(text: str) -> str:
    try:
        return str(Requirement(text))
    except InvalidRequirement as error:
        raise InputError(
            f"{text!r} is not a Python requirement",
            cause=str(error).splitlines()[0],
            next_step="correct `python` in the recipe; an example: setuptools<80",
        ) from error


def _unresolved(wanted: Sequence[str], python: str, said: str) -> ConflictError:
    lines = [line for line in said.splitlines() if line.startswith("ERROR:") or " depends on " in line]
    errors = [line for line in lines if line.startswith("ERROR:")]
    cause = (errors or said.strip().splitlines() or ["no message"])[0].removeprefix("ERROR: ")
    return ConflictError(
        f"no Python packages for Python {python} satisfy {', '.join(wanted)}",
        cause=cause,
        detail="\n".join(lines[:20]),
        next_step="loosen `python` or a tool's range in the recipe",
    )


def _unreachable(error: Exception) -> NetworkError:
    return NetworkError(
        "the package index does not answer",
        cause=type(error).__name__,
        next_step="check the network and pip's settings (pip config list), then try again",
    )
