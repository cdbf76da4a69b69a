"""Around every answer: headers of safety, and names that this server answers to."""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rocbase.errors import InputError
from rocbase.http.address import split
from rocwright.web.limits import WRONG_NAME, goes_by

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """Adds the headers to every answer of `inner`.

    `names`: the host names that it answers to beside addresses of the loopback; empty: any. A page of
    elsewhere whose name was made to lead here is refused so, and so is a form that comes from elsewhere.
    """

    def __init__(self, inner: ASGIApp, names: Collection[str] = ()) -> None:
        self.inner, self.names = inner, {name.lower() for name in names}
        self.headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                added = [header for header in self.headers if header[0] not in present]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        wrong = self._wrong(scope["method"], Headers(scope=scope))
        if wrong:
            await PlainTextResponse(f"{wrong}\n", 403)(scope, receive, safely)
            return
        await self.inner(scope, receive, safely)

    def _wrong(self, method: str, headers: Headers) -> str:
        """Why a request is refused before anybody looks at it, or ""."""
        host = headers.get("host", "")
        if self.names and not goes_by(host, self.names):
            return WRONG_NAME
        if method in ("GET", "HEAD"):
            return ""
        site, origin = headers.get("sec-fetch-site", ""), headers.get("origin", "")
        if site in ("cross-site", "same-site") or (origin and not _is_of(origin, host)):
            return "the form comes from another site"
        return ""


def _is_of(origin: str, host: str) -> bool:
    try:
        return split(origin).netloc == host
    except InputError:
        return False
