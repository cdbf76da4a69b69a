"""The licences of libraries from elsewhere: found where distributions and ROCm put them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rocwheel.wheels.repair.facts import Facts

_DOCUMENTS = ("share/doc", "usr/share/doc")
_DPKG = "var/lib/dpkg/info"
_LICENCE = re.compile(r"(?i)(licen[cs]e|copying|copyright|notice)")


def licences(
    libraries: Mapping[str, Path], roots: Iterable[Path], facts: Facts
) -> dict[str, tuple[Path, ...]]:
    """The licence files of each library, by its name; nothing for one whose licence is not found.

    `libraries` are files by their SONAMEs. Looked for: the package of Debian that has the file, by dpkg's
    lists and by how Debian names packages of libraries (policy, 8.1), and the folders of share/doc that the
    catalog names for one of ROCm's.
    """
    tops = tuple(root.resolve() for root in roots)
    machine = Path("/")
    owners = _owners(tuple(libraries.values()), (*tops, machine))
    by_library = {}
    for name, path in libraries.items():
        rocm_library = facts.elf_library(name) or facts.dll_library(name)
        names = (
            *owners.get(path, ()),
            *(rocm_library.documents if rocm_library else ()),
            *debian_names(name),
        )
        places = [
            (top, package) for top in tops if path.is_relative_to(top) for package in dict.fromkeys(names)
        ]
        # outside of the given roots a name alone is a guess: dpkg must say that the file is the package's
        places += [(machine, package) for package in owners.get(path, ())]
        by_library[name] = next((files for top, package in places if (files := _documents(top, package))), ())
    return by_library


def debian_names(soname: str) -> tuple[str, ...]:
    """How Debian may name the package of a library: libelf.so.1 is in libelf1 or libelf1t64.

    A hyphen comes between where the name itself ends with a digit. Source: Debian policy, 8.1. LLVM's
    packages say less: libLLVM-15.so.1 is in libllvm15, libLLVM.so.21.1 in libllvm21.
    """
    stem, _, version = soname.partition(".so")
    version = version.lstrip(".")
    base = stem.lower().replace("_", "-")
    name = f"{base}-{version}" if base[-1:].isdigit() and version else f"{base}{version}"
    return (name, f"{name}t64", base.replace("-", ""), f"{base}{version.partition('.')[0]}")


def _documents(top: Path, package: str) -> tuple[Path, ...]:
    """The licence files of a package below a root."""
    for documents in _DOCUMENTS:
        folder = top / documents / package
        if folder.is_dir():
            return tuple(
                path for path in sorted(folder.iterdir()) if path.is_file() and _LICENCE.match(path.name)
            )
    return ()


def _owners(files: tuple[Path, ...], tops: Iterable[Path]) -> dict[Path, tuple[str, ...]]:
    """The packages that have the files, by the lists that dpkg keeps."""
    owners: dict[Path, tuple[str, ...]] = {}
    for top in tops:
        # Debian's /lib is a link to /usr/lib: lists hold either
        pending = {name: file for file in files if file not in owners for name in _names_below(file, top)}
        if not pending or not (top / _DPKG).is_dir():
            continue
        for path in sorted((top / _DPKG).glob("*.list")):
            package = path.stem.partition(":")[0]
            for line in path.read_text(errors="replace").splitlines():
                if line in pending:
                    owners[pending[line]] = (package,)
    return owners


def _names_below(file: Path, top: Path) -> Iterator[str]:
    if file.is_relative_to(top):
        name = f"/{file.relative_to(top)}"
        yield name
        yield name.removeprefix("/usr")
