"""The index over HTTP: pages by content negotiation, wheels whole or in part, nothing to be written."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager

from anyio.to_thread import run_sync
from packaging.utils import canonicalize_name
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rocwheel.errors import RocwheelError
from rocwheel.files.atomic import sha256_bytes
from rocwheel.http.limits import LOOPBACK
from rocwheel.http.server import serve
from rocwheel.wheels.index import http
from rocwheel.wheels.index.examine import metadata, open_as_seen
from rocwheel.wheels.index.pages import HTML, JSON, METADATA
from rocwheel.wheels.index.response_cache import SAME, Again
from rocwheel.wheels.index.scan import PAGES
from rocwheel.wheels.index.sent import sent
from rocwheel.wheels.index.shelf import Shelf
from rocwheel.wheels.index.write import FILES

MOST_CLIENTS = 256

TYPES = {
    "text/html": HTML,
    HTML: HTML,
    "application/vnd.pypi.simple.latest+html": HTML,
    JSON: JSON,
    "application/vnd.pypi.simple.latest+json": JSON,
}
"""What a page can be asked for as, and what it is then; the first is for who takes anything (PEP 691)."""

_SAFE = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
_FOR_EVER = {"cache-control": "public, max-age=31536000, immutable"} | _SAFE


def app(shelf: Shelf, say: Callable[[str], None] = lambda line: None, *, log: bool = True) -> ASGIApp:
    """The application; `say` is told what goes wrong and, with `log`, one line a request.

    It looks into the folder while it runs.
    """

    @asynccontextmanager
    async def watching(_: Starlette) -> AsyncIterator[None]:
        watcher = threading.Thread(target=shelf.watch, args=(say,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            shelf.stop()

    made = Starlette(routes=routes(shelf), lifespan=watching, exception_handlers={HTTPException: _told})
    made.router.redirect_slashes = False
    quick = Again(made, lambda: shelf.revision)
    return _Logged(quick, say) if log else quick


def routes(shelf: Shelf) -> list[Route]:
    """The routes, to be mounted anywhere: links in the pages are relative."""

    async def start(request: Request) -> Response:
        return _start(request, shelf)

    async def page(request: Request) -> Response:
        return _page(request, shelf)

    async def file(request: Request) -> Response:
        return await _file(request, shelf)

    places = (f"/{PAGES}", f"/{{view}}/{PAGES}")
    ends = ("", "/", "/{project}", "/{project}/")
    return [
        Route("/", start),
        *(Route(place + end, page) for place in places for end in ends),
        Route(f"/{FILES}/{{sha256}}/{{name}}", file),
    ]


def run(
    shelf: Shelf,
    host: str,
    port: int,
    say: Callable[[str], None],
    *,
    log: bool = True,
    names: Collection[str] = (),
) -> None:
    """Serve until Ctrl-C; with `log`, a line for each request. `names`: host names that it goes by; on the
    loopback, by no other.

    Raises InputError where it cannot listen there.
    """
    serve(
        app(shelf, say, log=log),
        host,
        port,
        lambda address: say(f"serving {shelf.folder} at {address}/{PAGES}/"),
        most_clients=MOST_CLIENTS,
        # a page of elsewhere whose name was made to lead here reads nothing
        names=(*LOOPBACK, *names) if host in LOOPBACK else names,
    )


def _start(request: Request, shelf: Shelf) -> Response:
    rows = "".join(f'<li><a href="{one}/{PAGES}/">{one}</a></li>\n' for one in sorted(shelf.views))
    body = (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Package index</title></head>\n'
        f'<body>\n<h1>Package index</h1>\n<p><a href="{PAGES}/">All wheels</a>; by GPU:</p>\n<ul>\n{rows}'
        "</ul>\n</body>\n</html>\n"
    ).encode()
    return _answer(request, body, f'"{sha256_bytes(body)[:32]}"', "text/html; charset=utf-8", {})


def _page(request: Request, shelf: Shelf) -> Response:
    view = request.path_params.get("view", "")
    project = request.path_params.get("project", "")
    name = canonicalize_name(project)
    if view and view not in shelf.views:
        known = ", ".join(sorted(shelf.views)) or "none"
        raise HTTPException(404, f"no wheel here has code for that GPU; there are views for: {known}")
    if project and not (name.isascii() and name.replace("-", "").isalnum()):
        raise HTTPException(404, "not a valid project name")
    if name != project or not request.url.path.endswith("/"):
        return Response(status_code=301, headers={"location": _moved(request, project, name)} | _SAFE)
    kind = http.chosen(request.headers.get("accept", ""), tuple(TYPES))
    if kind is None:
        raise HTTPException(406, f"this page is available as {', '.join(TYPES)}")
    page = shelf.page(view, project, TYPES[kind])
    if page is None:
        raise HTTPException(404, _absent(shelf, view, project))
    request.scope[SAME] = True
    sent = TYPES[kind] if kind != "text/html" else "text/html; charset=utf-8"
    return _answer(request, page.body, page.etag, sent, {"vary": "Accept", "cache-control": "no-cache"})


def _moved(request: Request, project: str, name: str) -> str:
    """Where a page is, seen from where it was asked for: normalised, with a slash at its end."""
    if not project:
        return f"{PAGES}/"
    return f"../{name}/" if request.url.path.endswith("/") else f"{name}/"


def _absent(shelf: Shelf, view: str, project: str) -> str:
    shelf.look_soon()
    targets = shelf.targets_of(project) if view else []
    if targets:
        return f"no wheel of {project} has code for {view}; its wheels are for: {', '.join(targets)}"
    return f"there is no wheel of {project} here; /{PAGES}/ lists all projects"


async def _file(request: Request, shelf: Shelf) -> Response:
    sha256, name = request.path_params["sha256"], request.path_params["name"]
    wheel = shelf.wheel(sha256, name.removesuffix(METADATA))
    if wheel is None:
        shelf.look_soon()
        raise HTTPException(
            404, "there is no file with that name and hash here; its project's page lists the files"
        )
    try:
        if name.endswith(METADATA):
            body = await run_sync(metadata, shelf.folder, wheel)
            kind = "text/plain; charset=utf-8"
            return _answer(request, body, f'"{wheel.metadata_sha256}"', kind, _FOR_EVER)
        file = await run_sync(open_as_seen, shelf.folder, wheel.seen)
    except (RocwheelError, OSError) as error:
        shelf.look_soon()
        raise HTTPException(
            404, "the file was just removed or changed; reload the page of its project"
        ) from error
    return sent(request, file, wheel.seen.size, f'"{sha256}"', _FOR_EVER)


def _answer(request: Request, body: bytes, etag: str, kind: str, more: Mapping[str, str]) -> Response:
    """A small body, or 304 where the client has it."""
    headers = {"etag": etag, **_SAFE, **more}
    if http.names(request.headers.get("if-none-match", ""), etag):
        return Response(status_code=304, headers=headers)
    headers |= {"content-type": kind, "content-length": str(len(body))}
    return Response(b"" if request.method == "HEAD" else body, headers=headers)


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = {**_SAFE, **(error.headers or {})}
    return PlainTextResponse(f"{error.detail}\n", status_code=error.status_code, headers=headers)


class _Logged:
    """One line for each request: method, path as it came, status, bytes sent, range asked for."""

    def __init__(self, inner: ASGIApp, say: Callable[[str], None]) -> None:
        self._inner = inner
        self._say = say

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        status, sent = 0, 0

        async def counted(message: Message) -> None:
            nonlocal status, sent
            await send(message)
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                sent += len(message.get("body", b""))

        fault = ""
        try:
            await self._inner(scope, receive, counted)
        except Exception as error:
            fault = f"  {type(error).__name__}: {error}"
            raise
        finally:
            asked = dict(scope["headers"]).get(b"range", b"")[:100]
            path = scope.get("raw_path") or scope["path"].encode()
            words = (scope["method"], _printable(path), str(status), str(sent), _printable(asked))
            self._say(" ".join(words).rstrip() + fault)


def _printable(raw: bytes) -> str:
    return ascii(raw[:1000].decode("latin-1"))[1:-1]
