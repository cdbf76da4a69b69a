"""The lines with which pip installs from the index of this server, for whoever looks at a page."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from starlette.requests import Request

from rocwright.records.model import Artifact
from rocwright.web.limits import LOOPBACK
from rocwright.web.site import Site

# Tells the GPUs that have a view of the index.
Views = Callable[[], Collection[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexAt:
    """Where the index is for who asks: scheme and host; whether it asks for a token; the GPUs that have a
    view of it."""

    server: str
    token: bool = False
    views: Collection[str] = ()


def index_at(request: Request, site: Site, views: Views) -> IndexAt:
    """The index as this request reaches it."""
    server = f"{request.url.scheme}://{request.url.netloc}"
    return IndexAt(server=server, token=not site.access.open_, views=views())


def install_line(artifact: Artifact, index: IndexAt) -> str:
    """What installs exactly this wheel, "" for what is no wheel. TOKEN in it is to be replaced."""
    try:
        name, version, _, _ = parse_wheel_filename(artifact.filename)
    except InvalidWheelFilename:
        return ""
    url = urlsplit(index.server)
    view = f"/{quote(artifact.gpu[0])}" if len(artifact.gpu) == 1 and artifact.gpu[0] in index.views else ""
    address = f"{url.scheme}://{'me:TOKEN@' if index.token else ''}{url.netloc}{view}/simple/"
    # pip takes nothing over plain HTTP from elsewhere, unless it is told to
    trusted = "" if url.scheme == "https" or _is_here(url.hostname or "") else f"--trusted-host {url.netloc} "
    return f"pip install {trusted}--index-url {shlex.quote(address)} '{name}=={version}'"


def _is_here(host: str) -> bool:
    try:
        return host in LOOPBACK or ip_address(host).is_loopback
    except ValueError:
        return False
