"""Folders of tables laid over each other, as plain data: as little as a quick verb may load."""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli

from rocbase.errors import InputError

MOST_TOML_BYTES = 4 * 1024 * 1024
MOST_TOML_DOTS = 16
MOST_SOURCE = 500
"""Characters of a source that is cited by its name: a file must not grow to many times its size in memory."""

_CONFLICT = re.compile(r"^<{7} ", re.MULTILINE)
_CITED = re.compile(r"\{([^{}]+)\}")


def holder(name: str, folders: Sequence[Path]) -> Path | None:
    """The topmost folder that has the file or folder `name`, such as checks/torch/check.py.

    Raises InputError where that leads out of the folder: a catalog says nothing of other files.
    """
    folder = next((folder for folder in folders if (folder / name).exists()), None)
    if folder is not None and not (folder / name).resolve().is_relative_to(folder.resolve()):
        raise InputError(
            f"{name} points outside the catalog {folder}",
            cause="paths in a catalog may only name files in its own folder",
            next_step="copy the file into the catalog's folder and use its path there",
        )
    return folder


def layers(name: str, folders: Sequence[Path]) -> list[Path]:
    """Every file of that name, the lowest first. There must be one."""
    files = [folder / name for folder in reversed(folders) if (folder / name).exists()]
    return files or [folders[-1] / name]


def read_toml(path: Path, next_step: str = "correct the line that is named") -> dict[str, object]:
    """Return a TOML file as data. Raises InputError if it is missing, too large, or not TOML: then with
    `next_step`."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            # a pipe would be waited for without end
            raise InputError(
                f"{path} cannot be read",
                cause="it is a folder, a pipe or a device, not a file",
                next_step="remove it, or name another file",
            )
        if status.st_size > MOST_TOML_BYTES:
            raise InputError(
                f"{path} is too large to be read",
                cause=f"it has more than {MOST_TOML_BYTES // 1024} KiB, where such files have a few KiB",
                next_step="check that it is the right file",
            )
        text = path.read_text(encoding="utf-8")
        # the parser takes time by the square of the parts of a name
        if any(line.partition("=")[0].count(".") > MOST_TOML_DOTS for line in text.splitlines()):
            raise InputError(
                f"{path} has a key with too many parts",
                cause=f"a key has more than {MOST_TOML_DOTS} dots",
                next_step="shorten the dotted keys of the file",
            )
        return tomli.loads(text)
    except FileNotFoundError as error:
        raise InputError(
            f"{path} does not exist", cause="no file has this name", next_step="check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text", cause=str(error), next_step="save the file as UTF-8"
        ) from error
    except OSError as error:
        raise InputError(
            f"{path} cannot be read", cause=str(error), next_step="check its permissions"
        ) from error
    except (ValueError, RecursionError) as error:
        # ValueError: not TOML, or a number with more digits than Python reads
        end = f"at line {len(text.splitlines()) or 1}, where the file ends"
        message = str(error).replace("at end of document", end)
        cause = "it is nested too deeply" if isinstance(error, RecursionError) else message
        if conflict := _CONFLICT.search(text):
            cause = f"line {text.count(chr(10), 0, conflict.start()) + 1} begins a merge conflict of git"
        raise InputError(f"{path} is not valid TOML", cause=cause, next_step=next_step) from error


def read_table(path: Path) -> dict[str, object]:
    """Return a table's data with its rows spread out. Raises InputError as `read_toml` does."""
    return spread(read_toml(path), path)


def spread(data: dict[str, object], path: Path) -> dict[str, object]:
    """Return data in which each row says itself what the file says once.

    `default` is what all rows of a name say; with `by` they are tables of their own, [row.NAME], and that
    field of a row is its NAME. `sources` are texts by a name, which rows cite as "{name}". Raises InputError
    for a default of no rows and a name that is not there.
    """
    defaults, sources = data.pop("default", {}), _sources(data.pop("sources", {}), path)
    for name, values in defaults.items() if isinstance(defaults, dict) else [("default", None)]:
        shared = dict(values) if isinstance(values, dict) else {}
        by, rows = shared.pop("by", None), data.get(name)
        if by is not None and isinstance(rows, dict):
            rows = [{by: key} | row if isinstance(row, dict) else row for key, row in rows.items()]
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise InputError(
                f"{path}: default.{name} is of no rows",
                cause=f"the file has no tables [[{name}]], nor tables by a name",
                next_step=f"correct [default.{name}], or remove it",
            )
        data[name] = [shared | row for row in rows]
    return {name: _cited(value, sources, path) for name, value in data.items()} if sources else data


def _sources(table: object, path: Path) -> dict[str, str]:
    sources: dict[str, Any] = table if isinstance(table, dict) else {"": None}
    for name, text in sources.items():
        if not isinstance(text, str) or len(text) > MOST_SOURCE:
            raise InputError(
                f"{path}: sources.{name} is no short text",
                cause=f"a source is a text of at most {MOST_SOURCE} characters",
                next_step=f"shorten {name} in [sources]",
            )
    return sources


def _cited(value: object, sources: Mapping[str, str], path: Path) -> object:
    """Return rows with the texts of the sources that they cite."""
    if isinstance(value, list):
        return [_cited(row, sources, path) for row in value]
    if not isinstance(value, dict) or not isinstance(value.get("source"), list):
        return value
    try:
        # no format string of Python: a catalog of others could ask for a width of gigabytes
        return value | {
            "source": [_CITED.sub(lambda match: sources[match[1]], text) for text in value["source"]]
        }
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{path} cites a source that is not there",
            cause=f"{', '.join(map(str, value['source']))}: {error}",
            next_step="correct the name in braces, or add it to [sources]",
        ) from error
