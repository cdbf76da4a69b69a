"""Caches and images of other programs, found and removed by their own commands alone."""

from __future__ import annotations

import contextlib
import re
import shlex
from datetime import datetime
from pathlib import Path

from rocbase.errors import InputError
from rocbase.processes import run as process
from rocwright.execution.cleanup.model import CachingTool, Engine, Piece, Reclaimable, oldest
from rocwright.store.gc import file_stats

_UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_IMAGE = re.compile(r"(?P<id>\S+)\s+(?P<size>[0-9.]+)\s?(?P<unit>[kKMGT]?B)?\s+(?P<made>\d.*)")

SECONDS = 20.0
"""How long a program may take to say what it has."""


def find_tool(tool: CachingTool, days: float) -> Reclaimable:
    """A program's cache; it goes as a whole, once none of it is young."""
    output, reason = _ask(tool.folder)
    folder = Path(output.strip()) if output.strip() else None
    stats = list(file_stats(folder)) if folder and folder.is_absolute() and folder.is_dir() else []
    size, used = sum(stat.st_size for stat in stats), max((stat.st_mtime for stat in stats), default=0)
    free = size and used < oldest(days)
    return Reclaimable(
        kind=tool.name,
        holds=tool.holds,
        again=tool.again,
        size=size,
        count=len(stats),
        used=used,
        command=shlex.join(tool.clear),
        outside=True,
        why=reason,
        pieces=(Piece(kind=tool.name, name=str(folder), size=size, used=used),) if free else (),
    )


def find_images(engine: Engine, days: float) -> Reclaimable:
    """The images of an engine that its words find; those that a container needs, the engine keeps."""
    output, reason = _ask(engine.find)
    if engine.inspect and not reason:
        ids = tuple(dict.fromkeys(output.split()))
        output, reason = _ask((*engine.inspect, *ids)) if ids else ("", "")
    rows = (_image(engine, line) for line in output.splitlines())
    images = {image.name: image for image in rows if image}
    return Reclaimable(
        kind=engine.name,
        holds=engine.holds,
        again=engine.again,
        size=sum(image.size for image in images.values()),
        count=len(images),
        used=max((image.used for image in images.values()), default=0),
        command=shlex.join((*engine.remove, "...")),
        outside=True,
        why=reason,
        pieces=tuple(image for image in images.values() if image.used < oldest(days)),
    )


def _image(engine: Engine, line: str) -> Piece | None:
    """An image of a line with its id, its size (bytes, or as people read it) and when it was made."""
    match = _IMAGE.fullmatch(line.strip())
    if match is None:
        return None
    used = 0.0
    with contextlib.suppress(ValueError):
        used = datetime.fromisoformat(match["made"][:19].replace(" ", "T") + "+00:00").timestamp()
    size = round(float(match["size"]) * _UNITS[match["unit"] or "B"])
    return Piece(kind=engine.name, name=match["id"], size=size, used=used)


def _ask(command: tuple[str, ...]) -> tuple[str, str]:
    """What a program says, and why it says nothing."""
    try:
        # not in the user's folder: uv reads settings there, such as where its cache is
        completed = process.run(command, cwd=Path("/"), timeout=SECONDS)
    except (InputError, OSError) as error:
        return "", str(error)
    if completed.ok:
        return completed.stdout, ""
    lines = completed.stderr.strip().splitlines()
    return "", lines[-1][:200] if lines else f"{command[0]} ended with {completed.returncode}"
