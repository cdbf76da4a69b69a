"""What pip is shown of a package index while it resolves: the same projects, changed in three things.

Files are where this machine's mirrors have them. A project that is left to others has, for each of its
versions, a wheel of nothing that requires nothing. And a project that publishes no wheel at all has, for each
of its source distributions, a wheel of nothing with its metadata: pip resolves, and runs nothing of it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import unquote

from packaging.version import InvalidVersion, Version

from rocwheel.errors import RocwrightError
from rocwright.sources.sdist import SUFFIX, Sdist, stand_in, stand_in_name

if TYPE_CHECKING:
    from pypi_simple import DistributionPackage, ProjectPage

PAGE = "application/vnd.pypi.simple.v1+json"
WHEEL = "application/octet-stream"


class Front:
    """Pages of an index as pip is to see them.

    `page` asks the index, `at` says where a file is to be had, `read` what a source distribution says of
    itself; what was uploaded after `until` is not shown. `leave` has the names, as globs, of projects that
    are left to others; `left` is what is said of them, by the wheel that pip sees. `stand_ins` are source
    distributions by the wheel that pip sees; `errors` what went wrong.
    """

    def __init__(
        self,
        page: Callable[[str], ProjectPage],
        at: Callable[[str], str],
        read: Callable[[DistributionPackage], Sdist],
        until: datetime | None = None,
        leave: Sequence[str] = (),
    ) -> None:
        self._page, self._at, self._read, self._until = page, at, read, until
        self.pages: dict[str, ProjectPage] = {}
        self.stand_ins: dict[str, DistributionPackage] = {}
        self._leave, self.left = tuple(leave), dict[str, Sdist]()
        self.errors: list[RocwrightError] = []

    def page(self, project: str) -> ProjectPage:
        """What the index tells of a project, asked once. Raises FetchError, NetworkError."""
        if project not in self.pages:
            self.pages[project] = self._page(project)
        return self.pages[project]

    def answer(self, path: str) -> tuple[str, bytes]:
        """The kind and body of what lies at /PROJECT/ or /PROJECT/WHEEL. Raises KeyError, RocwrightError."""
        project, _, filename = unquote(path).strip("/").partition("/")
        if filename:
            left = self.left.get(filename)
            return WHEEL, stand_in(left or self._read(self.stand_ins[filename]))
        packages = [one for one in self.page(project).packages if not self._too_young(one)]
        wheels = [one for one in packages if one.package_type == "wheel"]
        if any(fnmatchcase(project, glob) for glob in self._leave):
            rows = list(self._left(project, packages))
        else:
            rows = [self._row(one) for one in wheels] or list(self._stand_ins(project, packages))
        body = {"meta": {"api-version": "1.0"}, "name": project, "files": rows}
        return PAGE, json.dumps(body).encode()

    def _too_young(self, package: DistributionPackage) -> bool:
        day = package.upload_time
        return self._until is not None and day is not None and day > self._until

    def _row(self, package: DistributionPackage) -> dict[str, object]:
        where = self._at(package.url)
        row = _shared(package) | {"filename": package.filename, "url": where, "hashes": package.digests}
        # a mirror of files need not have the metadata beside them
        told = package.has_metadata and where == package.url
        return row | ({"core-metadata": package.metadata_digests or True} if told else {})

    def _left(self, project: str, packages: list[DistributionPackage]) -> Iterator[dict[str, object]]:
        for version in sorted({one.version or "" for one in packages if _is_version(one.version)}):
            name = stand_in_name(project, version)
            self.left[name] = Sdist(name=project, version=version, requires=(), extras=(), build=())
            yield {"filename": name, "url": f"/{project}/{name}", "hashes": {}}

    def _stand_ins(self, project: str, packages: list[DistributionPackage]) -> Iterator[dict[str, object]]:
        for package in packages:
            usable = package.package_type == "sdist" and package.filename.endswith(SUFFIX)
            if not usable or "sha256" not in package.digests or not _is_version(package.version):
                continue
            name = stand_in_name(project, str(package.version))
            self.stand_ins[name] = package
            yield _shared(package) | {"filename": name, "url": f"/{project}/{name}", "hashes": {}}


def _shared(package: DistributionPackage) -> dict[str, object]:
    row: dict[str, object] = {"yanked": package.yanked_reason or True} if package.is_yanked else {}
    return row | ({"requires-python": package.requires_python} if package.requires_python else {})


def _is_version(text: str | None) -> bool:
    try:
        Version(text or "")
    except InvalidVersion:
        return False
    return True


@contextmanager
def served(front: Front) -> Iterator[str]:
    """Serve it on this machine alone, to whoever knows the port; gives the address of the index."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                kind, body = front.answer(self.path)
            except (RocwrightError, KeyError) as error:
                front.errors += [error] if isinstance(error, RocwrightError) else []
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
