"""DLLs: what one imports, which names of others it holds, and where a name is found."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pefile

from rocbase.errors import CheckError
from rocwheel.wheels.repair.facts import matches
from rocwheel.wheels.source import CHUNK

MAGIC = b"MZ"
MOST_BYTES = 4 * 1024**3
_DIRECTORIES = ("IMAGE_DIRECTORY_ENTRY_IMPORT", "IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT")
_NAME = re.compile(rb"(?<![\w./\\%+-])([A-Za-z0-9_+.-]{1,100}\.[dD][lL][lL])\0")
_WIDE = re.compile(rb"((?:[A-Za-z0-9_+.-]\0){1,100}\.\0[dD]\0[lL]\0[lL]\0)\0\0")
_LONGEST = 256


def imports(path: Path) -> tuple[str, ...]:
    """The DLLs that a PE file needs, at once or on first use. Raises CheckError for one that is damaged."""
    try:
        with pefile.PE(str(path), fast_load=True) as file:
            file.parse_data_directories([pefile.DIRECTORY_ENTRY[name] for name in _DIRECTORIES])
            entries = [
                *getattr(file, "DIRECTORY_ENTRY_IMPORT", ()),
                *getattr(file, "DIRECTORY_ENTRY_DELAY_IMPORT", ()),
            ]
            return tuple(dict.fromkeys(entry.dll.decode("ascii", errors="replace") for entry in entries))
    except Exception as error:  # the parser meets damaged tables with errors of many kinds
        raise CheckError(
            f"{path.name} cannot be read as a DLL: {error or type(error).__name__}",
            cause="the file is truncated, damaged, or not the kind of file its name says",
            next_step="build the file again, or get a fresh copy",
        ) from error


def dll_names_in(path: Path) -> tuple[str, ...]:
    """Strings in a PE file that look like a DLL's name, of one or two bytes a letter, in order, once each."""
    names: dict[str, None] = {}
    buffer = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            buffer += chunk
            names |= dict.fromkeys(match[1].decode() for match in _NAME.finditer(buffer))
            names |= dict.fromkeys(match[1].decode("utf-16-le") for match in _WIDE.finditer(buffer))
            buffer = buffer[-_LONGEST:]
    return tuple(names)


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders of DLLs; names have no case."""

    folders: tuple[Path, ...]
    _files: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in reversed(self.folders):
            self._files.update(
                {
                    path.name.lower(): path
                    for path in sorted(folder.iterdir())
                    if path.name.lower().endswith(".dll")
                }
            )

    def find(self, name: str) -> Path | None:
        """The first file of that name."""
        return self._files.get(name.lower())

    def matching(self, pattern: str) -> list[str]:
        """The names of files that match a pattern."""
        return [path.name for _, path in sorted(self._files.items()) if matches(path.name, (pattern,))]


def known_names(names: Iterable[str], pattern: str) -> list[str]:
    """Those of `names` that match a pattern of the catalog."""
    return [name for name in names if matches(name, (pattern,))]
