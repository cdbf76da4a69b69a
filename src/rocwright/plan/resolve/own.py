"""Finds what a project file says about a stack that is named beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rocbase.errors import InputError
from rocwright.plan.resolve.files import read_project
from rocwright.plan.resolve.folder import PROJECT, project_folder
from rocwright.plan.resolve.model import Request


def own_request(start: Path, stack: str, given: Mapping[str, object]) -> tuple[Path, Request] | None:
    """Return the nearest project folder and its row for a stack, None if no row is for it.

    `given` are fields of a request that the caller named. Raises InputError if they fit no row or several.
    """
    folder = project_folder(start)
    if not (folder / PROJECT).is_file():
        return None
    file = read_project(folder / PROJECT)
    own = {row.name: row for row in (*([file.request] if file.stack else []), *file.rows)}
    rows = [row for row in own.values() if row.stack == stack]
    fitting = [row for row in rows if all(_fits(row, *pair) for pair in given.items())]
    if rows and len(fitting) != 1:
        raise _unclear(folder / PROJECT, stack, rows, fitting)
    return (folder, fitting[0]) if fitting else None


def own_gpus(start: Path) -> tuple[str, ...]:
    """Return the GPUs of the nearest project file, none if there is no such file. Raises InputError."""
    path = project_folder(start) / PROJECT
    if not path.is_file():
        return ()
    file = read_project(path)
    return tuple(dict.fromkeys(gpu for gpus in (file.gpu, *(row.gpu for row in file.rows)) for gpu in gpus))


def _fits(row: Request, name: str, value: object) -> bool:
    own = getattr(row, name)
    if isinstance(value, tuple):
        return set(value) <= set(own)
    return value.items() <= own.items() if isinstance(value, dict) else bool(value == own)


def _unclear(path: Path, stack: str, rows: list[Request], fitting: list[Request]) -> InputError:
    lines = [" ".join(row.words) for row in fitting or rows]
    if fitting:
        return InputError(
            f"{path} has {len(fitting)} rows for {stack}",
            cause="; ".join(lines),
            next_step=f"name one of them, such as: {lines[0]}",
        )
    return InputError(
        f"the options contradict {path}",
        cause=f"that file asks for {'; '.join(lines)}",
        next_step="leave the options out, change that file, or use a folder without a project file",
    )
