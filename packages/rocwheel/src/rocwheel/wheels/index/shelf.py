"""A folder of wheels as a server sees it: pages in memory, and a look at the folder now and then."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rocwheel.errors import RocwheelError
from rocwheel.files.atomic import sha256_bytes
from rocwheel.home import Home
from rocwheel.wheels.index.cache import Cache, cache_file, views_of
from rocwheel.wheels.index.examine import Problem, Wheel
from rocwheel.wheels.index.pages import HTML, JSON, Pages, for_target, is_for, project_pages, root_pages
from rocwheel.wheels.index.refresh import Look, refresh
from rocwheel.wheels.index.write import hashed

MOST_MEMORY = 64 * 1024**2
"""Bytes of pages that are kept; the ones asked for last."""

LEAST_WAIT = 1.0
REST = 20.0
"""A look at the folder comes this many seconds after the last, or so many times what that took."""


@dataclass(frozen=True, slots=True)
class Page:
    """One form of a page, and its entity tag."""

    body: bytes
    etag: str


class Shelf:
    """The wheels of a folder. Its methods may be called from several threads."""

    def __init__(self, folder: Path, home: Home | None = None) -> None:
        self.folder = folder
        self._cache = Cache(cache_file(folder, home))
        self._looking = Cache(cache_file(folder, home))
        self._lock = threading.Lock()
        self._pages: OrderedDict[tuple[str, str], dict[str, Page]] = OrderedDict()
        self._held = 0
        self._revision = -1
        self._views: frozenset[str] = frozenset()
        self._wake = threading.Event()
        self._stopped = False

    def look(self, progress: Callable[[int, int], None] = lambda done, of: None) -> Look:
        """Bring it up to what lies in the folder now. Raises InputError."""
        found = refresh(self.folder, self._looking, progress)
        with self._lock:
            if self._cache.revision != self._revision:
                self._pages.clear()
                self._held = 0
                self._revision = self._cache.revision
                self._views = frozenset(views_of(self._cache.projects()))
        return found

    def watch(self, say: Callable[[str], None]) -> None:
        """Look again and again until `stop`; `say` is told what is left out, once."""
        told: set[Problem] = set()
        took = 0.0
        while not self._stopped:
            self._wake.wait(max(LEAST_WAIT, REST * took))
            self._wake.clear()
            if self._stopped:
                return
            begun = time.monotonic()
            try:
                problems = set(self.look().problems)
            except (RocwheelError, OSError) as error:
                say(f"cannot read {self.folder}: {error}")
            else:
                for one in sorted(problems - told, key=lambda one: one.path):
                    say(f"left out  {one.path}: {one.what}")
                told = problems
            took = time.monotonic() - begun

    def look_soon(self) -> None:
        """Have `watch` look at once."""
        self._wake.set()

    def stop(self) -> None:
        """End `watch`."""
        self._stopped = True
        self._wake.set()

    @property
    def held(self) -> int:
        """Bytes of pages that are kept."""
        return self._held

    @property
    def revision(self) -> int:
        """Another number after each look that found something new."""
        return self._revision

    @property
    def views(self) -> frozenset[str]:
        """The targets that have a view."""
        return self._views

    def page(self, view: str, project: str, form: str) -> Page | None:
        """A page as HTML or JSON; `project` empty for the page of all. None where there is no such page."""
        with self._lock:
            key = (view, project)
            if key in self._pages:
                self._pages.move_to_end(key)
                return self._pages[key][form]
            made = self._make(view, project)
            if made is None:
                return None
            forms = {HTML: _page(made.html), JSON: _page(made.json)}
            self._pages[key] = forms
            self._held += _size(forms)
            while self._held > MOST_MEMORY and len(self._pages) > 1:
                self._held -= _size(self._pages.popitem(last=False)[1])
            return forms[form]

    def wheel(self, sha256: str, filename: str) -> Wheel | None:
        """The wheel of this content and name."""
        with self._lock:
            return self._cache.wheel(sha256, filename)

    def targets_of(self, project: str) -> list[str]:
        """The targets that wheels of a project hold code for."""
        with self._lock:
            listed = self._cache.wheels(project)
        return sorted({name for one in listed for name in one.wheel.targets or ()})

    def _make(self, view: str, project: str) -> Pages | None:
        if view and view not in self._views:
            return None
        if not project:
            sets = self._cache.projects()
            return root_pages(
                name
                for name, each in sets.items()
                if not view or any(is_for(targets, view) for targets in each)
            )
        listed = self._cache.wheels(project)
        if view:
            listed = for_target(listed, view)
        return project_pages(project, listed, hashed, 3 if view else 2) if listed else None


def _page(body: bytes) -> Page:
    return Page(body, f'"{sha256_bytes(body)[:32]}"')


def _size(forms: dict[str, Page]) -> int:
    return sum(len(one.body) for one in forms.values())
