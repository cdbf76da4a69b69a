"""Folders that a stranger may have replaced by links."""

from __future__ import annotations

from pathlib import Path

from rocbase.errors import InputError


def through_no_link(path: Path, top: Path) -> Path:
    """Return a path below `top`. Raises InputError if it, or a folder between the two, is a link.

    A cloned project can bring links, and would make whoever builds it write among their own files. `top`
    itself may be one: people keep large outputs on another disk.
    """
    parts = path.relative_to(top).parts
    for number in range(1, len(parts) + 1):
        place = top.joinpath(*parts[:number])
        if place.is_symlink():
            raise InputError(
                f"{place} is a link",
                cause="a cloned project could make this program write elsewhere, such as among your settings",
                next_step=f"remove it: rm {place}",
            )
    return path


def is_plain_file(path: Path, top: Path) -> bool:
    """Return whether a path below `top` is a file, to which no link leads from `top`."""
    try:
        return through_no_link(path, top).is_file()
    except InputError:
        return False
