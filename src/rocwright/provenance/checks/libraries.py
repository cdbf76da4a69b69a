"""Whether the libraries that a wheel needs are where it is going to run."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from rocwheel.wheels.elf import MAGIC
from rocwheel.wheels.lint.linking import missing_libraries
from rocwheel.wheels.members import members
from rocwheel.wheels.needed import Linkage, linkage
from rocwright.provenance.checks.static import CheckNote

# What the finding is called.
LIBRARIES = "libraries"

_MARK = ".so"


def libraries_needed(wheel: Path, other_wheels: Iterable[Path] = ()) -> dict[str, tuple[str, ...]]:
    """Libraries that a wheel leaves to the system, and by which of its files each is needed.

    What `other_wheels`, which are installed beside it, bring does not count. Raises InputError or CheckError
    for what cannot be read.
    """
    own: dict[str, Linkage] = {}
    for member in members(wheel):
        needs = linkage(member.open()) if member.head.startswith(MAGIC) else None
        if needs is not None:
            own[member.path] = needs
    missing = missing_libraries(own)
    provided = (
        {PurePosixPath(member.path).name for path in other_wheels for member in members(path)}
        if missing
        else set()
    )
    return {name: paths for name, paths in missing.items() if name not in provided}


def libraries_in(root: Path) -> frozenset[str]:
    """The names of all shared libraries in a root file system, links among them. No link is followed."""
    entries = os.walk(root, followlinks=False)
    return frozenset(name for _, _, names in entries for name in names if _MARK in name)


def judged(
    needed: Mapping[str, Sequence[str]], present: Container[str], packages: Iterable[str], component: str
) -> CheckNote:
    """Whether the libraries `needed`, each by some files, are all `present`.

    `packages` are those of the root file system to build in: one of them may say what the recipe of
    `component` forgot.
    """
    names, wrong = list(packages), []
    for library, files in needed.items():
        if library not in present:
            package = package_like(library, names)
            remedy = f": system.run of {component} must name what brings {package}" if package else ""
            wrong.append(f"{library}, which {files[0]} needs, is not in the root to check in{remedy}")
    summary = f"all {len(needed):,} that it needs of the system are in the root to check in"
    return CheckNote(LIBRARIES, not wrong, "; ".join(wrong) or summary)


def package_like(library: str, packages: Iterable[str]) -> str:
    """The first of `packages` that Debian's naming of libraries gives to this SONAME; empty without one.

    Source: Debian Policy 8.1: the SONAME without `.so.`, with a dash where the name ends with a digit.
    """
    name, _, version = library.lower().partition(f"{_MARK}.")
    expected = f"{name}-{version}" if name[-1:].isdigit() else f"{name}{version}"
    return next(
        (package for package in sorted(packages) if version and package in (expected, f"{expected}t64")), ""
    )
