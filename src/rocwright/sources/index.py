"""The Python package index that this machine's pip is set up for."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rocwright import process
from rocwright.errors import FetchError, NetworkError
from rocwright.plan.model import FilePin, IndexOrigin
from rocwright.sources.mirrors import mirrors
from rocwright.sources.pins import check_pin
from rocwright.store.model import Store

if TYPE_CHECKING:
    from pypi_simple import ProjectPage, PyPISimple

_SETTING = re.compile(r"^(\S*)\.index-url='([^']+)'$", re.MULTILINE)


def _client() -> PyPISimple:
    from pypi_simple import PYPI_SIMPLE_ENDPOINT, PyPISimple

    listed = process.run([sys.executable, "-m", "pip", "config", "list"], timeout=60)
    found = dict(_SETTING.findall(listed.stdout))
    # the environment goes before pip's files
    endpoint = found.get(":env:") or next(reversed(found.values()), PYPI_SIMPLE_ENDPOINT)
    return PyPISimple(endpoint=mirrors().at(endpoint))


def _page(client: PyPISimple, project: str) -> ProjectPage:
    """What the index tells of a project. Raises FetchError, NetworkError."""
    import requests
    from pypi_simple import NoSuchProjectError
    from pypi_simple.errors import UnsupportedRepoVersionError

    try:
        return client.get_project_page(project, timeout=60)
    except NoSuchProjectError as error:
        raise FetchError(
            f"the package index has no project {project}",
            cause="the name, or the index that pip is set up for, is another",
            next_step="check the recipe's source, and pip config list",
        ) from error
    except requests.RequestException as error:
        raise _unreachable(error) from error
    except (UnsupportedRepoVersionError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise NetworkError(
            f"what the package index tells of {project} cannot be read",
            cause=f"{type(error).__name__}: {error}"[:500],
            next_step="check pip's settings (pip config list): is it an index, or a page to log in at?",
        ) from error


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
        cause="the release has wheels only, was withdrawn, or the index is too old to give hashes",
        next_step="name another source place in the recipe",
    )


def _measured(pin: FilePin, store: Store) -> FilePin:
    with tempfile.TemporaryDirectory(prefix="rocwright-index-") as folder:
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
    import requests

    assert isinstance(pin.origin, IndexOrigin)
    client = _client()
    page = _page(client, pin.origin.project)
    package = next((one for one in page.packages if one.filename == pin.filename), None)
    if package is None:
        raise FetchError(
            f"the package index has no {pin.filename} any more",
            cause="the release was withdrawn",
            next_step="rocwright lock takes what is there now",
        )
    try:
        client.download_package(package, folder / pin.filename, verify=False, timeout=120)
    except requests.RequestException as error:
        raise _unreachable(error) from error


def _unreachable(error: Exception) -> NetworkError:
    return NetworkError(
        "the package index does not answer",
        cause=type(error).__name__,
        next_step="check the network and pip's settings (pip config list), then try again",
    )
