"""For programs that know no sessions (installers, feed readers, Prometheus): a token is their password."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from rocwright.web.site import Site

ASK = {"www-authenticate": 'Basic realm="rocwright: any name, and a token as the password"'}


def for_readers(
    site: Site, answer: Callable[[Request], Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    """The same for whoever may read; others are told how to say who they are."""

    async def guarded(request: Request) -> Response:
        try:
            site.need(request, "read")
        except HTTPException as error:
            headers = ASK if error.status_code == 401 else {}
            return PlainTextResponse(f"{error.detail}\n", error.status_code, headers)
        return await answer(request)

    return guarded
