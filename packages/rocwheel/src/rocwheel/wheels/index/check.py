"""Whether a written index is whole: every link leads to a file, which is what its page says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from packaging.utils import canonicalize_name

from rocbase.errors import CheckError, InputError
from rocbase.files.atomic import sha256_file
from rocbase.folders.links import is_plain_file
from rocwheel.wheels.index.examine import wheel_name
from rocwheel.wheels.index.model import MARKER, PAGES, Marker
from rocwheel.wheels.index.write import HTML_NAME, JSON_NAME, METADATA, simple

_BASE_URL = "http://index/"
_ROWS = {"data-requires-python": "requires-python", "data-yanked": "yanked"}


@dataclass(frozen=True, slots=True, order=True)
class IndexFault:
    """Something wrong in a tree: the file that is wrong or says so, and what."""

    place: str
    what: str


def check(out: Path, *, hashes: bool = True) -> list[IndexFault]:
    """Return what is wrong; with `hashes` every wheel is read. Raises InputError if there is no index."""
    name = f"{PAGES}/{MARKER}"
    marker = Marker.load(out / name)
    if marker is None:
        raise InputError(
            f"there is no {out / name}",
            cause="rocwheel wrote no index there",
            next_step="give the folder that `rocwheel index build` wrote to",
        )
    checking = _Checking(out, hashes)
    if not marker.whole:
        checking.say(
            name, "the index was not written to its end; rewrite it with `rocwheel index build --all`"
        )
    for view in ("", *marker.views):
        checking.view(view)
    return checking.faults


class _Checking:
    """One pass over an index; a file is read once, however many pages link to it."""

    def __init__(self, out: Path, hashes: bool) -> None:
        self.faults: list[IndexFault] = []
        self._out = out
        self._hashes = hashes
        self._sums: dict[str, str] = {}
        self._linked: set[str] = set()
        self._first: dict[str, dict[str, Mapping[str, Any]]] = {}
        """The files of each project by name, as the pages of everything tell them."""

    def say(self, place: str, problem: str) -> None:
        self.faults.append(IndexFault(place, problem))

    def view(self, view: str) -> None:
        """The pages of a view, the empty one that of everything, and what lies beside them."""
        folder = simple(view)
        projects = [str(row.get("name", "")) for row in self._rows(folder, "projects")]
        if [address for address, _, _ in self._links(folder)] != [f"{name}/" for name in projects]:
            self.say(folder + HTML_NAME, "it does not list the same projects as its JSON form")
        expected = {folder + HTML_NAME, folder + JSON_NAME}
        for name in projects:
            if not name or canonicalize_name(name) != name or "/" in name:
                self.say(folder + JSON_NAME, f"{name[:100]!r} is not a normalised project name")
                continue
            expected |= {f"{folder}{name}/{HTML_NAME}", f"{folder}{name}/{JSON_NAME}"}
            self._project(view, name, f"{folder}{name}/")
        expected |= self._linked
        for path in sorted((self._out / folder).rglob("[!.]*")):
            key = path.relative_to(self._out).as_posix()
            if key not in expected and not path.is_dir():
                self.say(key, "no page links to it")

    def _project(self, view: str, project: str, folder: str) -> None:
        files = {str(row.get("filename", "")): row for row in self._rows(folder, "files")}
        if not view:
            self._first[project] = files
        for name, file in files.items():
            if view and _without_url(self._first.get(project, {}).get(name, {})) != _without_url(file):
                self.say(folder + JSON_NAME, f"{name[:200]}: /{simple('')} says something else about it")
            for problem in self._wrong(folder, project, name, file):
                self.say(folder + JSON_NAME, f"{name[:200]}: {problem}")
        if [_of_link(*link) for link in self._links(folder)] != [_of_file(file) for file in files.values()]:
            self.say(folder + HTML_NAME, "it differs from its JSON form")

    def _wrong(self, folder: str, project: str, name: str, file: Mapping[str, Any]) -> list[str]:
        try:
            problems = [] if wheel_name(name)[0] == project else ["it is a wheel of another project"]
        except CheckError as error:
            return [error.message]
        key = _key(folder, str(file.get("url", "")))
        if key is None or key.rpartition("/")[2] != name:
            return [*problems, "its URL points outside the index, or to a file of another name"]
        self._linked |= {key, key + METADATA}
        path = self._out / key
        if not is_plain_file(path, self._out):
            return [*problems, f"{key} is missing"]
        size = path.stat().st_size
        if size != file.get("size"):
            problems.append(f"{key} has {size:,} bytes, its page says {file.get('size')}")
        elif self._hashes and self._sum(key) != _sha256(file.get("hashes")):
            problems.append(f"{key} does not have the sha256 that its page says")
        if self._sum(key + METADATA) != _sha256(file.get("core-metadata")):
            problems.append(f"{key + METADATA} is missing, or does not have the sha256 that its page says")
        return problems

    def _sum(self, key: str) -> str:
        """A file's sha256, nothing where it is not there."""
        if key not in self._sums:
            path = self._out / key
            self._sums[key] = sha256_file(path) if is_plain_file(path, self._out) else ""
        return self._sums[key]

    def _read(self, key: str) -> bytes:
        path = self._out / key
        return path.read_bytes() if is_plain_file(path, self._out) else b""

    def _rows(self, folder: str, field: str) -> list[Mapping[str, Any]]:
        key = folder + JSON_NAME
        try:
            rows = json.loads(self._read(key))[field]
        except (ValueError, TypeError, LookupError):
            rows = None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            self.say(key, "it is damaged or missing")
            return []
        return rows

    def _links(self, folder: str) -> list[tuple[str, dict[str, str], str]]:
        parser = _Links()
        parser.feed(self._read(folder + HTML_NAME).decode(errors="replace"))
        return parser.links


class _Links(HTMLParser):
    """The links of a page: address, the other attributes, text."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, dict[str, str], str]] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self._inside = tag == "a"
        if self._inside:
            attributes = {name: value or "" for name, value in attrs}
            self.links.append((attributes.pop("href", ""), attributes, ""))

    def handle_data(self, data: str) -> None:
        if self._inside:
            address, attributes, text = self.links[-1]
            self.links[-1] = (address, attributes, text + data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = False


def _key(folder: str, url: str) -> str | None:
    """The file that an address on a page of `folder` leads to, None where that is none of this tree."""
    try:
        target = urljoin(_BASE_URL + folder, url)
        path = unquote(urlsplit(target).path)
    except ValueError:
        return None
    inside = target.startswith(_BASE_URL) and ".." not in path.split("/") and "\0" not in path
    return path.removeprefix("/") if inside else None


def _sha256(hashes: object) -> str:
    return str(hashes.get("sha256", "?")) if isinstance(hashes, dict) else "?"


def _without_url(file: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in file.items() if name != "url"}


def _of_link(address: str, attributes: Mapping[str, str], text: str) -> tuple[str, ...]:
    metadata = attributes.get("data-core-metadata", "")
    return (text, address, metadata, *(attributes.get(name, "-") for name in _ROWS))


def _of_file(file: Mapping[str, Any]) -> tuple[str, ...]:
    rows = ["" if (value := file.get(name, "-")) is True else str(value) for name in _ROWS.values()]
    return (
        str(file.get("filename")),
        f"{file.get('url')}#sha256={_sha256(file.get('hashes'))}",
        f"sha256={_sha256(file.get('core-metadata'))}",
        *rows,
    )
