"""A Python source distribution, read without running anything of it: what it needs, and what builds it.

Sources: https://packaging.python.org/specifications/ (source distribution format, core metadata,
pyproject.toml); setuptools writes `requires.txt` of its egg-info into every sdist, and older ones say what
they need only there.
"""

from __future__ import annotations

import email
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from rocbase.errors import FetchError
from rocbase.folders.temporary import temporary_folder
from rocwheel.wheels.names import read_requirement
from rocwright.sources.archive import unpack

# The one form that the specification knows.
SUFFIX = ".tar.gz"

# What builds a tree that does not say it.
DEFAULT_BUILD = ("setuptools", "wheel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdist:
    """What a source distribution says of itself: requirements (PEP 508), and what builds it."""

    name: str
    version: str
    requires: tuple[str, ...]
    build: tuple[str, ...]


def read_sdist(path: Path, filename: str) -> Sdist:
    """Read a source distribution. Raises FetchError for what is none, or cannot be unpacked safely."""
    with temporary_folder("sdist") as folder:
        tree = Path(folder) / "tree"
        unpack(path, tree, filename=filename)
        try:
            metadata = email.message_from_string((tree / "PKG-INFO").read_text(errors="replace"))
            requires = metadata.get_all("Requires-Dist", []) or _of_egg_info(tree)
            for text in requires:
                read_requirement(text)
            return Sdist(
                name=canonicalize_name(metadata["Name"] or ""),
                version=metadata["Version"] or "",
                requires=tuple(requires),
                build=_build_requirements(tree / "pyproject.toml"),
            )
        except (OSError, ValueError, TypeError, InvalidRequirement) as error:
            raise FetchError(
                f"{filename} is not a readable source distribution",
                cause=f"{type(error).__name__}: {error}"[:300].replace(str(folder), ""),
                next_step="use another version of it in the recipe",
                subject=filename,
            ) from error


def _build_requirements(path: Path) -> tuple[str, ...]:
    if not path.exists():
        return DEFAULT_BUILD
    system = tomllib.loads(path.read_text()).get("build-system", {})
    requirements = tuple(str(read_requirement(text)) for text in system.get("requires", DEFAULT_BUILD))
    return (
        requirements if "build-backend" in system else tuple(dict.fromkeys([*requirements, *DEFAULT_BUILD]))
    )


def _of_egg_info(tree: Path) -> list[str]:
    requires: list[str] = []
    for path in sorted(tree.glob("**/*.egg-info/requires.txt"))[:1]:
        for extra, marker, requirement in _rows(path.read_text()):
            conditions = [f"({marker})"] if marker else []
            conditions += [f'extra == "{extra}"'] if extra else []
            requires.append(requirement + (f" ; {' and '.join(conditions)}" if conditions else ""))
    return requires


def _rows(text: str) -> Iterator[tuple[str, str, str]]:
    """Lines of requires.txt, each below its [extra:marker]."""
    extra = marker = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("["):
            extra, _, marker = line.strip("[]").partition(":")
        else:
            yield extra, marker, line
