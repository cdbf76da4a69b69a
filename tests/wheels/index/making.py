"""Small wheels, good and hostile, and the pages that an index makes of them."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any

from rocwright.home import Home
from rocwright.wheels.index.cache import opened
from rocwright.wheels.index.place import open_tree
from rocwright.wheels.index.refresh import Look, refresh
from rocwright.wheels.index.tree import Tree
from rocwright.wheels.index.write import Written, write
from tests.wheels.fatbin import entry_id, fatbin, gpu_elf, host_elf, plain_bundle

CODE = {
    "gfx1030": gpu_elf(0x036),
    "gfx1100": gpu_elf(0x041),
    "gfx1151": gpu_elf(0x04A),
    "gfx11-generic": gpu_elf(0x054 | 1 << 24, abi=4),
}


def make_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    tag: str = "py3-none-any",
    requires: str = ">=3.9",
    needs: tuple[str, ...] = (),
    targets: tuple[str, ...] = (),
    files: Mapping[str, bytes] | None = None,
    metadata: bytes | None = None,
) -> Path:
    """A wheel that installs; with `targets`, one whose library holds code for those."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Python: {requires}"] if requires else []
    lines += [f"Requires-Dist: {one}" for one in needs]
    told = "\n".join([*lines, "", "About it.", ""]).encode()
    content = {
        f"{name}/__init__.py": f"VERSION = {version!r}\n".encode(),
        f"{info}/METADATA": told if metadata is None else metadata,
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
    }
    if targets:
        bundle = plain_bundle([(entry_id(one), CODE[one]) for one in targets])
        content[f"{name}/lib.so"] = host_elf(fatbin([bundle]))
    content |= files or {}
    record = "".join(f"{path},,\n" for path in (*content, f"{info}/RECORD"))
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, data in (content | {f"{info}/RECORD": record.encode()}).items():
            archive.writestr(place, data)
    return path


def index(folder: Path, home: Home, out: str = "", *, tree: Tree | None = None) -> tuple[Look, Written]:
    """Look at a folder and write its pages, as the command does."""
    with opened(folder, home) as cache:
        look = refresh(folder, cache)
        return look, write(folder, tree or open_tree(out or str(folder)), cache)


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
