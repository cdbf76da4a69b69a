"""What every page needs: the records, the home folder, who may see it, and what may not be shown."""

from __future__ import annotations

import base64
import contextlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from anyio.to_thread import run_sync
from starlette.exceptions import HTTPException
from starlette.requests import Request

from rocbase.errors import InputError
from rocwright.diagnosis.masking import secrets_of_environment
from rocwright.follow.cycle.channels import channels, channels_in
from rocwright.home import Home
from rocwright.plan.resolve.files import read_project
from rocwright.plan.resolve.folder import PROJECT
from rocwright.plan.resolve.settings import Channel, ProjectFile
from rocwright.records.read import Records
from rocwright.web.access import Access, Scope, SignIn
from rocwright.web.forms import fields

T = TypeVar("T")

COOKIE = "rocwright"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One server: `folder` is the project that it was started in, `working` says of an origin whether its
    order is being worked on."""

    home: Home
    records: Records
    access: Access
    folder: Path
    working: Callable[[str], bool] = lambda _: False
    hidden: tuple[str, ...] = field(default_factory=secrets_of_environment)

    def own(self) -> ProjectFile | None:
        """The project in the folder. Raises InputError where its file cannot be read."""
        path = self.folder / PROJECT
        return read_project(path) if path.exists() else None

    def channels(self) -> tuple[Channel, ...]:
        """The channels that locks can be promoted to."""
        return channels_in(self.folder)

    def order(self) -> tuple[str, ...]:
        """The names of channels in their order; the catalog's, where the project cannot be read."""
        with contextlib.suppress(InputError):
            return tuple(channel.name for channel in self.channels())
        return tuple(channel.name for channel in channels())

    def session(self, request: Request) -> SignIn | None:
        """Who asks, where they gave a token: in the page, or as a password, as installers can."""
        header = request.headers.get("authorization", "")
        if header[:6].lower() == "basic ":
            return self.access.known(password(header[6:]))
        return self.access.session(request.cookies.get(COOKIE, ""))

    def need(self, request: Request, scope: Scope) -> SignIn | None:
        """Raises HTTPException where whoever asks may not do this."""
        session = self.session(request)
        if not self.access.may(session, scope):
            raise HTTPException(403 if session else 401, f"this needs a token with the scope {scope}")
        return session

    def still(self, request: Request, scope: Scope) -> bool:
        """Whether who asked may do it now: a token can be removed, and a session end, while an answer goes
        on."""
        return self.access.may(self.session(request), scope)

    async def need_form(self, request: Request, scope: Scope) -> tuple[SignIn, dict[str, str]]:
        """Who sent a form, and its fields; the form must be one of ours. Raises HTTPException."""
        session = self.need(request, scope)
        if session is None:
            raise HTTPException(401, f"this needs a token with the scope {scope}")
        form = await fields(request)
        if not hmac.compare_digest(form.pop("secret", "").encode(), session.secret.encode()):
            raise HTTPException(
                403, "the form has expired or comes from another site: reload the page and try again"
            )
        return session, form


def password(encoded: str) -> str:
    """The password of HTTP's basic authentication, "" where there is none."""
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def number(text: str, otherwise: int = 0) -> int:
    """The number that an address asks for, `otherwise` where it is none."""
    return int(text) if text.isdecimal() and len(text) < 19 else otherwise


async def asked(work: Callable[[], T]) -> T:
    """What a blocking call gives, without keeping other clients waiting."""
    return await run_sync(work)
