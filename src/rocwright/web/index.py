"""The wheels of the project's folder as a package index, beside the pages."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from rocwheel.wheels.index.serve import routes
from rocwheel.wheels.index.shelf import LEAST_WAIT, Shelf
from rocwright.home import Home
from rocwright.web.site import Site

ASK = {"www-authenticate": 'Basic realm="rocwright: any name, and a token as the password"'}


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
        return [Route(one.path, _guarded(site, one)) for one in routes(self.shelf) if one.path != "/"]


def _guarded(site: Site, route: Route) -> Callable[[Request], object]:
    async def answer(request: Request) -> Response:
        try:
            site.need(request, "read")
        except HTTPException as error:
            headers = ASK if error.status_code == 401 else {}
            return PlainTextResponse(f"{error.detail}\n", error.status_code, headers)
        made: Response = await route.endpoint(request)
        return made

    return answer
