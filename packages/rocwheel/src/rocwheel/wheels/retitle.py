"""A wheel's files under another version: METADATA, and the folders that are named after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rocwheel.wheels.metadata import Headers, WheelName, dist_info_folder, moved
from rocwheel.wheels.write import WheelFile


def retitled(files: Sequence[WheelFile], version: str) -> list[WheelFile]:
    """The files of a wheel of this version; `with_local` makes one that says what was changed.

    Nothing but METADATA's Version and the names of *.dist-info and *.data is changed.
    """
    folder = dist_info_folder(file.path for file in files)
    renamed = []
    for file in files:
        content = file.content
        if file.path == f"{folder}/METADATA":
            content = Headers(file.read()).replaced("Version", [version]).as_bytes()
        renamed.append(replace(file, path=moved(file.path, folder, version), content=content))
    return renamed


def named(name: WheelName, version: str) -> str:
    """The file name of the same wheel in this version."""
    return replace(name, version=version.replace("-", "_")).file_name
