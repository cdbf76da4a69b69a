"""The application: addresses, headers of safety, entering and leaving."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib.resources import files
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from rocbase.errors import ExplainedError
from rocbase.files.atomic import sha256_bytes
from rocwright.web.access import TooManyError
from rocwright.web.actions import Doing
from rocwright.web.artifacts import Artifacts
from rocwright.web.cells import Cells
from rocwright.web.cycling import Cycling
from rocwright.web.farm import Workers
from rocwright.web.feed import Feed
from rocwright.web.following import Following
from rocwright.web.forms import fields
from rocwright.web.guard import Guard
from rocwright.web.health import Health
from rocwright.web.index import Index
from rocwright.web.live import Live
from rocwright.web.matrix import Matrix
from rocwright.web.metrics import Metrics
from rocwright.web.pages import Pages
from rocwright.web.queue import Queue
from rocwright.web.readers import for_readers
from rocwright.web.servers import Servers
from rocwright.web.site import COOKIE, Site
from rocwright.web.trends import Trends

STATIC = {
    "site.css": "text/css; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "icon-bad.svg": "image/svg+xml",
}


def app(
    site: Site,
    names: Collection[str] = (),
    queue: Queue | None = None,
    cycling: Cycling | None = None,
    index: Index | None = None,
    health: Health | None = None,
) -> ASGIApp:
    """The dashboard of a site, which goes by these names (none: by any); with a queue things are done from
    it, with an index wheels are served."""
    health = health or Health(site, cycling)
    pages = Pages(site)
    live = Live(pages)
    trends = Trends(pages)
    views = index.views if index else frozenset
    artifacts, cells = Artifacts(pages, views), Cells(pages, views)
    following = Following(pages)
    gate = _Gate(pages)
    action_routes = Doing(pages, queue, cycling).routes() if queue else []
    inner = Starlette(
        routes=[
            *(index.routes(site) if index else []),
            Route("/", Matrix(site, cycling).page),
            Route("/gpu/{gpu}", cells.gpu),
            Route("/cell", cells.cell),
            Route("/runs", pages.runs),
            Route("/runs/{run}", pages.run),
            Route("/runs/{run}/lock", pages.lock),
            Route("/runs/{run}/live", live.run),
            Route("/runs/{run}/log/{step:path}/live", live.log),
            Route("/runs/{run}/log/{step:path}", pages.log),
            Route("/issues", pages.issues),
            Route("/trends", trends.trends),
            Route("/compare", trends.compare),
            Route("/watch", following.watch),
            Route("/cycle", following.cycle),
            Route("/farm", Workers(pages).page),
            Route("/servers", Servers(pages).page),
            Route("/artifacts", artifacts.all),
            Route("/artifacts/{sha256}", artifacts.one),
            Route("/artifacts/{sha256}/file", artifacts.file),
            Route("/artifacts/{sha256}/proof/{what}", artifacts.proof),
            Route("/enter", gate.enter, methods=["GET", "POST"]),
            Route("/leave", gate.leave, methods=["POST"]),
            Route("/static/{name}", _static),
            Route("/healthz", health.page),
            Route("/metrics", for_readers(site, Metrics(health).page)),
            Route("/feed.atom", for_readers(site, Feed(site).page)),
            *action_routes,
        ],
        exception_handlers={HTTPException: gate.told, ExplainedError: gate.failed},
    )
    return Guard(inner, names)


class _Gate:
    """Entering with a token, leaving, and what is said to who may not pass."""

    def __init__(self, pages: Pages) -> None:
        self.pages, self.site = pages, pages.site

    async def enter(self, request: Request) -> Response:
        """A form for the token; a link with a token in it enters at once."""
        token = request.query_params.get("token", "")
        if request.method == "POST":
            form = await fields(request)
            token, to = form.get("token", ""), form.get("to", "/")
        else:
            to = request.query_params.get("to", "/")
        if not token:
            return self.pages.page(request, "enter.html", to=_inside(to), says="")
        address = request.client.host if request.client else ""
        ident = self.site.access.enter(token.strip())
        try:
            # a link is no attempt: any page of elsewhere can have a browser follow one
            if not ident and request.method == "POST":
                self.site.access.wrong(address)
        except TooManyError as error:
            wait = str(int(error.seconds) + 1)
            answer = self.pages.page(
                request, "enter.html", 429, to=_inside(to), says=f"Too many wrong tokens: wait {wait} s."
            )
            answer.headers["retry-after"] = wait
            return answer
        if not ident:
            return self.pages.page(request, "enter.html", 403, to=_inside(to), says="Wrong token.")
        response = RedirectResponse(_inside(to), 303)
        response.set_cookie(
            COOKIE, ident, httponly=True, samesite="strict", secure=request.url.scheme == "https"
        )
        return response

    async def leave(self, request: Request) -> Response:
        """End the session."""
        await self.site.need_form(request, "read")
        self.site.access.leave(request.cookies.get(COOKIE, ""))
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(COOKIE)
        return answer

    async def told(self, request: Request, error: Exception) -> Response:
        """What is wrong, as a page."""
        assert isinstance(error, HTTPException)
        if error.status_code == 401 and request.method == "GET" and "live" not in request.url.path:
            return RedirectResponse(
                str(request.url_for("enter").include_query_params(to=request.url.path)), 303
            )
        answer = self.pages.page(
            request, "told.html", error.status_code, code=error.status_code, says=error.detail
        )
        answer.headers.update(error.headers or {})
        return answer

    async def failed(self, request: Request, error: Exception) -> Response:
        """The records, or the disk, do not answer."""
        assert isinstance(error, ExplainedError)
        says = f"{error.message}: {error.cause}" if error.cause else error.message
        return self.pages.page(request, "told.html", 503, code=503, says=says)


def _inside(to: str) -> str:
    """An address of this site and no other."""
    try:
        elsewhere = bool(urlsplit(to).netloc)
    except ValueError:
        elsewhere = True
    return to if to.startswith("/") and not to.startswith(("//", "/\\")) and not elsewhere else "/"


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise HTTPException(404, "there is no such file")
    data = _static_bytes(name)
    headers = {"cache-control": "no-cache", "etag": f'"{sha256_bytes(data)[:32]}"'}
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=STATIC[name], headers=headers)


@cache
def _static_bytes(name: str) -> bytes:
    return files("rocwright.web").joinpath("static", name).read_bytes()
