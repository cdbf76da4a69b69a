"""Asks the loader which file stands for a library to each installed library that names it.

usage: loaded.py FOLDER LIBRARY [ARCHIVES]

FOLDER has the installed wheels, LIBRARY is how the library's name begins. The archives (.tar.gz) in ARCHIVES
are unpacked into FOLDER.

Prints one line for each, of which the file must lie in FOLDER:
ROCWRIGHT-CHECK {"name": ..., "ok": ..., "detail": ...}. Needs the C library's `ldd`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

MARK = "ROCWRIGHT-CHECK "


def tell(name: str, ok: bool, detail: str) -> bool:
    print(MARK + json.dumps({"name": name, "ok": ok, "detail": detail, "device": "cpu"}), flush=True)
    return ok


def loaded(library: Path, name: str) -> list[str]:
    """The files that the loader takes for the libraries whose name begins with `name`."""
    printed = subprocess.run(["ldd", library], text=True, capture_output=True, check=False)
    rows = [line.split() for line in printed.stdout.splitlines()]
    return [row[2] for row in rows if row[2:] and row[0].startswith(name)]


def unpack(archives: Path, folder: Path) -> None:
    for path in sorted(archives.glob("*.tar.gz")):
        with tarfile.open(path) as archive:
            archive.extractall(folder / path.name, filter="data")


def main(folder: Path, name: str, archives: Path | None = None) -> int:
    if archives is not None:
        unpack(archives, folder)
    libraries = [path for path in sorted(folder.rglob("*.so*")) if not path.name.startswith(name)]
    calling = [path for path in libraries if name.encode() in path.read_bytes()]
    answers = [(path, file) for path in calling for file in loaded(path, name)]
    if not answers:
        tell(name, False, "nothing loads it")
        return 1
    results = [
        tell(str(path.relative_to(folder)), Path(file).is_relative_to(folder), f"loads {file}")
        for path, file in answers
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], *map(Path, sys.argv[3:])))
