"""The files that a page of a web server lists, and their days where it tells them.

Two forms are read: links, as web servers write them, and a JSON list in a script, as TheRock's pages of
tarballs have it (build_tools/index_generation_s3_tar.py in ROCm/TheRock): name, and seconds since 1970.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from urllib.parse import unquote

_LIST = re.compile(r"\bfiles\s*=\s*(?=\[)")
_LINK = re.compile(r"""\bhref\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)


def listed(page: str) -> dict[str, datetime | None]:
    """The names of files on a page, each with its day."""
    links = (re.split("[?#]", unescape(link))[0].rpartition("/")[2] for link in _LINK.findall(page))
    return {unquote(name): None for name in links if name} | dict(_in_scripts(page))


def _in_scripts(page: str) -> Iterator[tuple[str, datetime | None]]:
    for match in _LIST.finditer(page):
        rows: object = None
        with contextlib.suppress(ValueError, RecursionError):
            rows, _ = json.JSONDecoder().raw_decode(page, match.end())
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and isinstance(row.get("name"), str):
                yield row["name"], _day(row.get("mtime"))


def _day(seconds: object) -> datetime | None:
    with contextlib.suppress(ValueError, OverflowError, OSError):
        if isinstance(seconds, int | float):
            return datetime.fromtimestamp(seconds, UTC)
    return None
