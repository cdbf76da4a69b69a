"""Packs what a check needs to run on another machine: its programs, their libraries, Python, and its inputs.

usage: collect.py TARGET FOLDER...      in the root file system and with the mounts of the check

TARGET becomes a tar of a small root file system. Libraries are those that the loader takes, and LIBRARIES,
which drivers of GPUs want beside these. Needs Python 3.11 and nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

PROGRAMS = ("/usr/bin/python3", "/bin/sh", "/usr/bin/env")

# NVIDIA's driver opens these, and brings none of them.
LIBRARIES = ("libdl.so.2", "libpthread.so.0", "librt.so.1", "libX11.so.6", "libXext.so.6", "libxcb.so.1")
FILES = ("/etc/passwd", "/etc/group")

# Of Python's own library: what no check imports, and what is made again.
LEFT_OUT = frozenset(
    {"test", "tests", "idlelib", "turtledemo", "ensurepip", "lib2to3", "pydoc_data", "__pycache__"}
)
LOADERS = ("/lib64", "/lib")
MAGIC = b"\x7fELF"


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == MAGIC


def below(folder: Path, left_out: frozenset[str] = frozenset()) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in left_out)
        yield from (Path(place, name) for name in sorted(names))


def linked(path: Path) -> list[Path]:
    """The files that the loader takes for what a program or library is linked to, the loader itself too."""
    loader = next(file for folder in LOADERS for file in sorted(Path(folder).glob("ld-linux*.so.*")))
    printed = subprocess.run([loader, "--list", path], capture_output=True, text=True, check=False)
    words = [line.split() for line in printed.stdout.splitlines()]
    return [loader, *(Path(word) for row in words for word in row if word.startswith("/"))]


def paths(folders: list[Path]) -> Iterator[Path]:
    """Every file, links among them."""
    stdlib = Path(os.__file__).parent
    first = [Path(program) for program in PROGRAMS]
    places = ("lib*", "lib*/*")  # Debian has a folder of the architecture, Fedora has lib64
    first += [path for name in LIBRARIES for place in places for path in Path("/usr").glob(f"{place}/{name}")]
    first += [*below(stdlib, LEFT_OUT), *(path for folder in folders for path in below(folder))]
    for path in first:
        yield path
        if path.is_file() and is_elf(path):
            yield from linked(path)
    yield from map(Path, FILES)


def main(target: Path, folders: list[Path]) -> None:
    packed: set[str] = set()
    with tarfile.open(target, "w") as tar:

        def add(path: Path) -> None:
            # where the root has the file in truth: its /lib and /bin are links
            place = Path(os.path.realpath(path.parent), path.name)
            if str(place) in packed or not os.path.lexists(place):
                return
            packed.add(str(place))
            info = tar.gettarinfo(place, arcname=f"root{place}")
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            if info.isreg():
                with place.open("rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)
            if place.is_symlink():
                add(place.parent / place.readlink())

        for name in ("/bin", "/lib", "/lib64", "/sbin", "/usr/bin/python3"):
            add(Path(name)) if Path(name).is_symlink() else None
        for path in paths(folders):
            add(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(word) for word in sys.argv[2:]])
