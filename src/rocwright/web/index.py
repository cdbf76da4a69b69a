"""The wheels of the project's folder as a package index, next to the pages.

No address becomes a path: a file is looked up by hash and name among the wheels of the last look.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

from anyio.to_thread import run_sync
from packaging.utils import canonicalize_name
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rocbase.errors import ExplainedError
from rocbase.files.atomic import sha256_bytes
from rocwheel.wheels.index.examine import metadata, open_as_seen
from rocwheel.wheels.index.look import Look, look, scan
from rocwheel.wheels.index.model import PAGES, YANKS, Marker, Problem, Wheel, is_for
from rocwheel.wheels.index.pages import JSON, project_pages, root_pages
from rocwheel.wheels.index.write import METADATA
from rocwright.home import Home
from rocwright.web.readers import for_readers
from rocwright.web.sent import page, sent
from rocwright.web.site import Site

# A look at the folder comes this many seconds after the last, or so many times what that took.
LEAST_WAIT, REST = 1.0, 20.0

_AGAIN = {"vary": "Accept", "cache-control": "no-cache"}
_FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}


class Index:
    """Looks into `folder` while it runs; the folder may come later."""

    def __init__(self, folder: Path, home: Home, say: Callable[[str], None]) -> None:
        self.folder, self.say = folder, say
        name = sha256_bytes(str(folder.resolve()).encode(errors="surrogateescape"))[:16]
        self._cached = home.indexes / f"{name}.json"
        self._set(
            (Marker.load(self._cached) or Marker()).wheels, Look(wheels=(), yanks={}, problems=(), read=0)
        )
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()

    def look(self) -> tuple[Problem, ...]:
        """Read what is new in the folder. Raises InputError."""
        scan = look(self.folder, self._known)
        if scan.wheels != self._known:
            Marker(wheels=scan.wheels).save(self._cached)
        self._set(scan.wheels, scan)
        return scan.problems

    def _set(self, scanned: tuple[Wheel, ...], scan: Look) -> None:
        projects = scan.projects
        listed = [entry.wheel for wheels in projects.values() for entry in wheels]
        # pages link to files, and views to pages
        self._known, self._files = scanned, {(wheel.sha256, wheel.filename): wheel for wheel in listed}
        self._projects = projects
        self._views = frozenset(name for wheel in listed for name in wheel.targets or ())

    def _watch(self) -> None:
        reported: set[Problem] = set()
        state: object = None
        wait = 0.0
        while not self._ended.wait(wait):
            start = time.monotonic()
            try:
                # a wheel that cannot be read is not read again until something changes
                if self.folder.is_dir() and state != (current := self._state()):
                    problems = set(self.look())
                    if self._state() != current:
                        # a wheel is being written: the next look tells what is left out
                        continue
                    for problem in sorted(problems - reported, key=lambda problem: problem.path):
                        self.say(f"left out  {problem.path}: {problem.what}")
                    state, reported = current, problems
            except (ExplainedError, OSError) as error:
                self.say(f"cannot read {self.folder}: {error}")
            finally:
                wait = max(LEAST_WAIT, REST * (time.monotonic() - start))

    def _state(self) -> object:
        yanks = self.folder / YANKS
        return scan(self.folder), yanks.stat().st_mtime_ns if yanks.exists() else 0

    def views(self) -> Collection[str]:
        """Return the targets that have a view."""
        return self._views

    def routes(self, site: Site) -> list[Route]:
        """Return its pages and files, for whoever may read."""
        places = (f"/{PAGES}/", f"/{{view}}/{PAGES}/")
        return [
            *(Route(place, for_readers(site, self._page)) for place in places),
            *(Route(place + "{project}/", for_readers(site, self._page)) for place in places),
            Route("/files/{sha256}/{name}", for_readers(site, self._file)),
        ]

    async def _page(self, request: Request) -> Response:
        view, project = (request.path_params.get(name, "") for name in ("view", "project"))
        if view and view not in self._views:
            raise HTTPException(
                404, f"no wheel here has code for that GPU; there are views for: {self._names()}"
            )
        name = canonicalize_name(project)
        if project and name != project and name in self._projects:
            return Response(status_code=301, headers={"location": f"../{name}/"})
        shown = {
            name: [entry for entry in wheels if not view or is_for(entry.wheel.targets, view)]
            for name, wheels in self._projects.items()
            if not project or name == project
        }
        if project and not shown.get(project):
            raise HTTPException(404, "no such project here has a wheel for that GPU, or for any")
        if project:
            pages = project_pages(project, shown[project], _key, 3 if view else 2)
        else:
            pages = root_pages(name for name, wheels in shown.items() if wheels)
        if "+json" in request.headers.get("accept", ""):
            return page(request, pages.json, JSON, _AGAIN)
        return page(request, pages.html, "text/html; charset=utf-8", _AGAIN)

    def _names(self) -> str:
        return ", ".join(sorted(self._views)) or "none"

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        wheel = self._files.get((request.path_params["sha256"], name.removesuffix(METADATA)))
        if wheel is None:
            raise HTTPException(
                404, "there is no file with that name and hash here; its project's page lists the files"
            )
        try:
            if name.endswith(METADATA):
                body = await run_sync(metadata, self.folder, wheel)
                return page(request, body, "text/plain; charset=utf-8", _FOR_EVER)
            file = await run_sync(open_as_seen, self.folder, wheel.seen)
        except (ExplainedError, OSError):
            raise HTTPException(
                404, "the file changed or was removed: ask for its project's page again"
            ) from None
        return sent(request, file, wheel.seen.size, f'"{wheel.sha256}"', _FOR_EVER)


def _key(wheel: Wheel) -> str:
    return f"files/{wheel.sha256}/{wheel.filename}"
