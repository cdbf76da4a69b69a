"""Patch files of others: single ones, packed with gzip too, and series as quilt and Debian keep them.

Source of the form of a series: quilt(1), and dpkg-source(1), format 3.0 (quilt): a file a line, `#` begins a
comment, options `-pN` and `-R` behind the name.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import InputError
from rocbase.units import size
from rocwright.model.edits import check_inside

SERIES = "series"
# Bytes of a patch, unpacked.
LARGEST = 64 * 1024 * 1024

MOST_PATCHES = 10_000
_GZIP = b"\x1f\x8b"
_STRIP = re.compile(r"-p(\d|ab)")
_COMMENT = re.compile(r"(?:^|\s)#.*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignPatch:
    """A patch by the name that a series or the user gives it.

    `strip` first parts of its paths are left out, `reverse`: it is taken back. Its text has a character a
    byte (ISO 8859-1): it may be in any encoding, or in several.
    """

    name: str
    text: str
    strip: int = 1
    reverse: bool = False


def read_patches(paths: Sequence[Path], strip: int | None = None) -> list[ForeignPatch]:
    """The patches that paths name, in order: a file each, a file named `series`, or a folder with one.

    `strip` stands over what a series says. Raises InputError for what cannot be read, is too large, or leads
    out of the series' folder.
    """
    patches: list[ForeignPatch] = []
    for path in paths:
        if path.is_dir() and not (path / SERIES).is_file():
            raise InputError(
                f"{path} is a folder without a series",
                cause="quilt and Debian name the patches of a folder in a file `series`",
                next_step="name the patch files, or the folder that has the series (debian/patches)",
            )
        if path.is_dir() or path.name == SERIES:
            patches += _series(path / SERIES if path.is_dir() else path, strip)
        else:
            patches.append(
                ForeignPatch(name=path.name, text=_text(path), strip=1 if strip is None else strip)
            )
    return patches


def _series(path: Path, strip: int | None) -> Iterator[ForeignPatch]:
    folder = path.parent.resolve()
    lines = _text(path).splitlines()
    entries = [words for line in lines if (words := _COMMENT.sub("", line).split())]
    if len(entries) > MOST_PATCHES:
        raise _wrong(path, f"it names more than {MOST_PATCHES:,} patches")
    for name, *options in entries:
        level, reverse = 1, False
        for option in options:
            if match := _STRIP.fullmatch(option):
                # quilt writes a/ and b/ as one part
                level = 1 if match[1] == "ab" else int(match[1])
            elif option == "-R":
                reverse = True
            else:
                raise _wrong(path, f"{name} has the option {option[:40]}, which is neither -pN nor -R")
        file = (folder / name).resolve()
        try:
            check_inside(name)
        except ValueError as error:
            raise _wrong(path, str(error)) from error
        if not file.is_relative_to(folder):
            raise _wrong(path, f"{name} leads out of {folder} through a link")
        yield ForeignPatch(
            name=name, text=_text(file), strip=level if strip is None else strip, reverse=reverse
        )


def _text(path: Path) -> str:
    try:
        if not path.is_file():
            raise InputError(
                f"there is no patch {path}",
                cause="the path is wrong, or the series names a file that is not there",
                next_step="check the path",
            )
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror or error}",
            cause="this user may not read it",
            next_step="check its permissions",
        ) from error
    if data.startswith(_GZIP):
        data = _unpacked(path, data)
    if len(data) > LARGEST:
        raise _wrong(path, f"it has more than {size(LARGEST)}")
    return data.decode("latin-1")


def _unpacked(path: Path, data: bytes) -> bytes:
    unpack = zlib.decompressobj(wbits=31)
    try:
        content = unpack.decompress(data, LARGEST + 1)
    except zlib.error as error:
        raise _wrong(path, f"gzip: {error}") from error
    if not unpack.eof and len(content) <= LARGEST:
        raise _wrong(path, "gzip: it is cut short")
    return content


def _wrong(path: Path, reason: str) -> InputError:
    return InputError(
        f"{path} cannot be used",
        cause=reason,
        next_step="check where it came from, or make it again",
        subject=str(path),
    )
