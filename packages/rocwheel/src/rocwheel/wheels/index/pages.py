"""The pages of the simple API as text: HTML (PEP 503, 592, 658, 714) and JSON (PEP 691, 700)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from html import escape
from urllib.parse import quote

from packaging.version import Version

from rocwheel.wheels.index.model import Listed, Wheel

HTML = "application/vnd.pypi.simple.v1+html"
JSON = "application/vnd.pypi.simple.v1+json"
API = "1.1"
"""The version of the simple API that the pages are of: sizes, versions and times (PEP 700)."""

Link = Callable[[Wheel], str]
"""Where a wheel is, seen from the index's root: an unquoted path."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Pages:
    """One page in both forms."""

    html: bytes
    json: bytes


def root_pages(projects: Iterable[str]) -> Pages:
    """The page that lists the projects, whose names are normalised."""
    names = list(projects)
    links = "".join(f'<a href="{name}/">{name}</a><br>\n' for name in names)
    data = {"meta": {"api-version": API}, "projects": [{"name": name} for name in names]}
    return Pages(_html("Simple index", links), _json(data))


def project_pages(project: str, listed: Sequence[Listed], link: Link, depth: int) -> Pages:
    """The page of a project, which lies `depth` folders below the index's root."""
    ordered = sorted(listed, key=lambda entry: (_version(entry.wheel.version), entry.wheel.filename))
    up = "../" * depth
    rows = [(entry, up + quote(link(entry.wheel))) for entry in ordered]
    versions = dict.fromkeys(entry.wheel.version for entry in ordered)
    data = {
        "meta": {"api-version": API},
        "name": project,
        "versions": list(versions),
        "files": [_file(entry, address) for entry, address in rows],
    }
    return Pages(_html(f"Links for {project}", "".join(_anchor(*row) for row in rows)), _json(data))


def _anchor(entry: Listed, address: str) -> str:
    wheel = entry.wheel
    attributes = f' data-core-metadata="sha256={wheel.metadata_sha256}"'
    # the name that PEP 658 first had; older installers know only this
    attributes += f' data-dist-info-metadata="sha256={wheel.metadata_sha256}"'
    if wheel.requires_python:
        attributes += f' data-requires-python="{escape(wheel.requires_python)}"'
    if entry.yanked is not None:
        attributes += f' data-yanked="{escape(entry.yanked)}"'
    return f'<a href="{escape(address)}#sha256={wheel.sha256}"{attributes}>{escape(wheel.filename)}</a><br>\n'


def _file(entry: Listed, address: str) -> dict[str, object]:
    wheel = entry.wheel
    row: dict[str, object] = {
        "filename": wheel.filename,
        "url": address,
        "hashes": {"sha256": wheel.sha256},
        "size": wheel.seen.size,
        "upload-time": _time(wheel.seen.mtime_ns),
        "core-metadata": {"sha256": wheel.metadata_sha256},
        "dist-info-metadata": {"sha256": wheel.metadata_sha256},
    }
    if wheel.requires_python:
        row["requires-python"] = wheel.requires_python
    if entry.yanked is not None:
        row["yanked"] = entry.yanked or True
    return row


def _time(mtime_ns: int) -> str:
    """ISO 8601 in UTC; a time that no calendar has is the epoch."""
    try:
        when = _EPOCH + timedelta(microseconds=mtime_ns // 1000)
    except OverflowError:
        when = _EPOCH
    return when.isoformat(timespec="microseconds").replace("+00:00", "Z")


@lru_cache(maxsize=65536)
def _version(text: str) -> Version:
    return Version(text)


def _html(title: str, body: str) -> bytes:
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="pypi:repository-version" content="{API}">\n<title>{title}</title>\n</head>\n'
        f"<body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n"
    ).encode()


def _json(data: object) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"
