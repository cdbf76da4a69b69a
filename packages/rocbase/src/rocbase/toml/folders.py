"""Folders of tables laid over each other, as plain data: as little as a quick verb may load."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

import tomli

from rocbase.errors import InputError

MOST_TOML_BYTES = 4 * 1024 * 1024
MOST_TOML_DOTS = 16


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


def read_toml(path: Path) -> dict[str, object]:
    """A TOML file as data. Raises InputError where it is not there, too large, or not TOML."""
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
        raise InputError(
            f"{path} is not valid TOML", cause=cause, next_step="correct the line that is named"
        ) from error
