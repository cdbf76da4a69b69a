"""The machines that run steps for each other, as their coordinator knows them now."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from rocwright.config import Farm, config
from rocwright.farm.handed import Place
from rocwright.farm.view import View
from rocwright.web.pages import Pages
from rocwright.web.site import asked

# For an answer of the coordinator: somebody waits for the page.
SECONDS = 5.0


class Workers:
    """Answers `/farm`: who is there, what it offers and runs, and who went."""

    def __init__(self, pages: Pages) -> None:
        self.pages, self.site = pages, pages.site
        self._views: dict[Farm, View] = {}

    async def page(self, request: Request) -> Response:
        """The farm that the settings of this machine name."""
        self.site.need(request, "read")
        settings = config().farm
        view = await asked(self._view(settings).look) if settings.scheduler else None
        return self.pages.page(request, "farm.html", seen=view, address=settings.scheduler)

    def _view(self, settings: Farm) -> View:
        return self._views.setdefault(settings, View(lambda: _places(settings)))


def _places(settings: Farm) -> list[Place]:
    from rocwright.plugins import require_extra

    require_extra("rocwright", "farm", "running steps on other machines")
    from rocwright.farm.dask.coordinator import places
    from rocwright.farm.dask.security import security_of

    return places(settings.scheduler, security_of(settings), SECONDS)
