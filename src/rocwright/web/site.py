"""What every page needs: the records, the home folder, who may see it, and what may not be shown."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from anyio.to_thread import run_sync
from starlette.exceptions import HTTPException
from starlette.requests import Request

from rocwright.home import Home
from rocwright.records.read import Records
from rocwright.web.access import Access, Scope, Session
from rocwright.web.forms import fields
from rocwright.web.log_lines import secrets_of_environment

T = TypeVar("T")

COOKIE = "rocwright"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One server: `folder` is the project that it was started in."""

    home: Home
    records: Records
    access: Access
    folder: Path
    hidden: tuple[str, ...] = field(default_factory=secrets_of_environment)

    def session(self, request: Request) -> Session | None:
        """Who asks, where they gave a token."""
        return self.access.session(request.cookies.get(COOKIE, ""))

    def need(self, request: Request, scope: Scope) -> Session | None:
        """Raises HTTPException where whoever asks may not do this."""
        session = self.session(request)
        if not self.access.may(session, scope):
            raise HTTPException(403 if session else 401, f"this needs a token with the scope {scope}")
        return session

    async def need_form(self, request: Request, scope: Scope) -> tuple[Session, dict[str, str]]:
        """Who sent a form, and its fields; the form must be one of ours. Raises HTTPException."""
        session = self.need(request, scope)
        if session is None:
            raise HTTPException(401, f"this needs a token with the scope {scope}")
        given = await fields(request)
        if not hmac.compare_digest(given.pop("secret", "").encode(), session.secret.encode()):
            raise HTTPException(403, "the form is old, or comes from elsewhere: load the page again")
        return session, given


async def asked(work: Callable[[], T]) -> T:
    """What a blocking call gives, without keeping other clients waiting."""
    return await run_sync(work)
