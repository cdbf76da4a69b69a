"""Small wheels, good and hostile, and the pages that an index makes of them."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

from rocwheel.wheels.index.look import Look
from rocwheel.wheels.index.write import Written, write
from rocwheel_samples.wheel import CODE as CODE
from rocwheel_samples.wheel import make_wheel as make_wheel


def index(folder: Path, out: Path | None = None) -> tuple[Look, Written]:
    """Write the index of a folder, as the command does."""
    return write(folder, out or folder)


def page(tree: Path, project: str = "", view: str = "") -> dict[str, Any]:
    """A page's JSON."""
    place = tree / view / "simple" / project / "index.v1_json"
    found: dict[str, Any] = json.loads(place.read_text())
    return found


def names(tree: Path, project: str, view: str = "") -> list[str]:
    """The files on a project's page."""
    return [one["filename"] for one in page(tree, project, view)["files"]]


def anchors(html: str) -> list[tuple[str, dict[str, str], str]]:
    """Address, data attributes and text of each link."""
    found = []
    for attributes, text in re.findall(r"<a ([^>]*)>([^<]*)</a>", html):
        parts = {name: unescape(value) for name, value in re.findall(r'([a-z-]+)="([^"]*)"', attributes)}
        found.append((parts.pop("href"), parts, unescape(text)))
    return found
