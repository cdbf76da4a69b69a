"""Moves the files of Debian's ROCm packages to where another distribution has them.

usage: move_rocm.py FROM=TO...

FROM and TO are the beginnings of paths. If several FROM fit a file, the longest counts. A file with an empty
TO stays.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCES = (
    "aqlprofile composable-kernel hipblas hipblas-common hipblaslt hipcub hipfft hiprand hipsolver hipsparse "
    "miopen rccl rocblas rocfft rocm-cmake rocm-core rocm-hipamd rocm-llvm rocm-smi-lib rocminfo rocprim "
    "rocr-runtime rocrand rocsolver rocsparse rocthrust roctracer"
)
OWN = "/usr/lib/x86_64-linux-gnu/"
LISTS = Path("/var/lib/dpkg/info")


def files() -> Iterator[Path]:
    """Yield the files and links of the packages."""
    words = ["dpkg-query", "-W", "-f", "${source:Package} ${binary:Package}\n"]
    for line in subprocess.check_output(words, text=True).splitlines():
        source, package = line.split()
        if source in SOURCES.split():
            paths = map(Path, (LISTS / f"{package}.list").read_text().splitlines())
            yield from (path for path in paths if path.is_symlink() or path.is_file())


def moved(path: Path, moves: Mapping[str, str]) -> Path:
    """Return where a file goes."""
    beginnings = [beginning for beginning in moves if str(path).startswith(beginning)]
    beginning = max(beginnings, key=len, default="")
    target = moves.get(beginning, "")
    return Path(target + str(path).removeprefix(beginning)) if target else path


def corrected(text: str, library: str) -> str:
    """Return a CMake file whose paths go up and down as the new place of the libraries demands."""
    text = text.replace(OWN.removeprefix("/usr/").rstrip("/"), library).replace("../../../..", "../../..")
    up = r'(get_filename_component[(](\w+) "[$][{]\2[}]" PATH[)]\n)'
    return re.sub(up + r"\1{3}", lambda match: match[1] * 3, text)


def main(moves: Mapping[str, str]) -> None:
    library = Path(moves[OWN])
    for path in files():
        target = moved(path, moves)
        if target != path:
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
        if target.suffix == ".cmake" and library in target.parents and not target.is_symlink():
            target.write_text(corrected(target.read_text(), library.name))
    Path("/etc/ld.so.conf.d/rocm.conf").write_text(f"{library}\n")
    subprocess.run(["ldconfig"], check=True)


if __name__ == "__main__":
    main(dict(word.split("=", 1) for word in sys.argv[1:]))
