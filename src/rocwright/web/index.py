"""The wheels of the project's folder as a package index, beside the pages."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from starlette.routing import Route

from rocwheel.wheels.index.serve import routes
from rocwheel.wheels.index.shelf import LEAST_WAIT, Shelf
from rocwright.home import Home
from rocwright.web.readers import for_readers
from rocwright.web.site import Site


class Index:
    """Looks into `folder` while it runs; the folder may come later."""

    def __init__(self, folder: Path, home: Home, say: Callable[[str], None]) -> None:
        self.folder, self.say = folder, say
        self.shelf = Shelf(folder, home)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        self.shelf.stop()

    def _watch(self) -> None:
        while not self.folder.is_dir():
            if self._ended.wait(LEAST_WAIT):
                return
        # the first look at once, the others each second
        self.shelf.look_soon()
        self.shelf.watch(self.say)

    def routes(self, site: Site) -> list[Route]:
        """Its pages and files, for whoever may read."""
        return [
            Route(one.path, for_readers(site, one.endpoint)) for one in routes(self.shelf) if one.path != "/"
        ]
