"""What a request's headers ask for: which form of a page, which bytes of a file. Pure functions."""

from __future__ import annotations

import re
from functools import lru_cache

_RANGE = re.compile(r"bytes=[ \t]*(\d{0,18})-(\d{0,18})[ \t]*", re.ASCII)
_QUALITY = re.compile(r"q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)", re.ASCII | re.IGNORECASE)
_LONGEST_ACCEPT = 2000


@lru_cache(maxsize=256)
def chosen(accept: str, offered: tuple[str, ...]) -> str | None:
    """The content type among `offered` that an Accept header wants most, the first of equals.

    An empty header takes anything. None where nothing that is offered is accepted. Source: RFC 9110, 12.5.1.
    """
    wanted = [one for one in map(_preference, accept[:_LONGEST_ACCEPT].split(",")) if one] or [("*/*", 1.0)]
    best: tuple[float, str] | None = None
    for kind in offered:
        fits = [(len(pattern.replace("*", "")), q) for pattern, q in wanted if _fits(pattern, kind)]
        # the most precise of the patterns that fit says how much the type is wanted
        quality = max(fits)[1] if fits else 0.0
        if quality > 0 and (best is None or quality > best[0]):
            best = (quality, kind)
    return best[1] if best else None


def span(header: str, size: int) -> tuple[int, int] | None:
    """The first byte that a Range header asks for, and the one after the last; None where all is to be sent.

    What is no range of bytes, or several of them, asks for nothing in particular (RFC 9110, 14.2). Raises
    ValueError where a file of `size` bytes has none of them.
    """
    found = _RANGE.fullmatch(header)
    if not found or not any(found.groups()):
        return None
    first, last = found.groups()
    begin, end = (int(first), int(last) + 1 if last else size) if first else (max(0, size - int(last)), size)
    if first and last and end <= begin:
        return None
    if begin >= size:
        raise ValueError(header)
    return begin, min(end, size)


def names(header: str, etag: str) -> bool:
    """Whether an If-None-Match header names an entity tag, weakly compared."""
    told = {one.strip().removeprefix("W/") for one in header.split(",")}
    return "*" in told or etag in told


def _preference(text: str) -> tuple[str, float] | None:
    kind, *parameters = (part.strip().lower() for part in text.split(";"))
    if "/" not in kind:
        return None
    qualities = (_QUALITY.fullmatch(one) for one in parameters)
    return kind, next((float(one[1]) for one in qualities if one), 1.0)


def _fits(pattern: str, kind: str) -> bool:
    return pattern in (kind, "*/*", kind.partition("/")[0] + "/*")
