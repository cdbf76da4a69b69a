"""Changes of state as an Atom feed (RFC 4287): what is told to destinations too, for whoever reads feeds."""

from __future__ import annotations

import uuid
from xml.etree.ElementTree import Element, SubElement, tostring

from starlette.requests import Request
from starlette.responses import Response

from rocbase.units import printable
from rocwright.diagnosis.masking import masked
from rocwright.follow.notify.ledger import read
from rocwright.follow.notify.model import Ledger, StateChange
from rocwright.web.site import Site, asked

ATOM = "http://www.w3.org/2005/Atom"
TYPE = "application/atom+xml"

# What is told before the first look.
EMPTY = Ledger(id="0" * 32, since="1970-01-01T00:00:00Z")


class Feed:
    """The newest changes of a site."""

    def __init__(self, site: Site) -> None:
        self.site = site

    async def page(self, request: Request) -> Response:
        """All that are kept, the newest first."""
        ledger = await asked(lambda: read(self.site.home)) or EMPTY
        server = f"{request.url.scheme}://{request.url.netloc}"
        return Response(_atom(ledger, server, self.site.hidden), media_type=TYPE)


def _atom(ledger: Ledger, server: str, hidden: tuple[str, ...]) -> bytes:
    feed = Element("feed", xmlns=ATOM)
    _text(feed, "id", _urn(ledger.id))
    _text(feed, "title", "rocwright: what changed")
    _text(feed, "updated", ledger.changes[-1].at if ledger.changes else ledger.since)
    _text(SubElement(feed, "author"), "name", "rocwright")
    SubElement(feed, "link", rel="self", href=f"{server}/feed.atom", type=TYPE)
    SubElement(feed, "link", rel="alternate", href=f"{server}/", type="text/html")
    for change in reversed(ledger.changes):
        _entry(SubElement(feed, "entry"), change, server, hidden)
    # with a declaration of its encoding: a reader must not guess it
    text: bytes = tostring(feed, encoding="utf-8", xml_declaration=True)
    return text


def _entry(entry: Element, change: StateChange, server: str, hidden: tuple[str, ...]) -> None:
    page = f"/runs/{change.run}" if change.run else "/cycle" if change.kind == "overdue" else "/watch"
    lines = "\n".join(change.detail) or change.headline
    _text(entry, "id", _urn(change.id))
    _text(entry, "title", masked(change.headline, hidden))
    _text(entry, "updated", change.at)
    SubElement(entry, "link", rel="alternate", href=f"{server}{page}", type="text/html")
    SubElement(entry, "category", term=change.kind)
    _text(entry, "content", masked(lines, hidden)).set("type", "text")


def _text(parent: Element, name: str, text: str) -> Element:
    element = SubElement(parent, name)
    # XML has no way to write most control characters
    element.text = printable(text, keep="\n")
    return element


def _urn(ident: str) -> str:
    """A name that stays, whatever this server is called."""
    return uuid.UUID(hex=ident).urn
