"""The libraries and programs that lie in an artifact, each with its hash and the name it is known by."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import CheckError, ExplainedError
from rocwheel.wheels.elf import MAGIC
from rocwheel.wheels.members import Member, members
from rocwheel.wheels.metadata import DIST_INFO, Headers
from rocwheel.wheels.needed import linkage


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundled:
    """An ELF file in an artifact: its path there, hex sha256 and size in bytes, and what its header says.

    `soname` and `needed` are empty for what is no shared library of this machine's kind (GPU code, say);
    `gpus` are the targets that it holds code for.
    """

    path: str
    sha256: str
    size: int
    soname: str = ""
    needed: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What an artifact holds: ELF files, and METADATA where it is a wheel."""

    bundled: tuple[Bundled, ...] = ()
    metadata: Headers | None = None


def contents(path: Path) -> Contents:
    """Read an artifact once. Raises InputError, CheckError as reading it does."""
    from rocwheel.wheels.inspection import inspect

    metadata = None
    libraries = []
    code: dict[str, tuple[str, ...]] = {}
    with contextlib.suppress(CheckError):
        # GPU code that cannot be read is the judge's business
        for library in inspect(path).libraries:
            code[library.path] = tuple(target.target_id for target in library.targets)
    for member in members(path):
        if member.path.count("/") == 1 and member.path.endswith(f"{DIST_INFO}/METADATA"):
            metadata = Headers(member.read())
        elif member.head.startswith(MAGIC):
            libraries.append(bundled(member, code.get(member.path, ())))
    return Contents(bundled=tuple(sorted(libraries, key=lambda library: library.path)), metadata=metadata)


def bundled(member: Member, gpus: tuple[str, ...] = ()) -> Bundled:
    """A file with its hash and what its header says; `gpus` are the targets that it holds code for."""
    source = member.open()
    try:
        links = linkage(source)
    except ExplainedError:
        # what its tables say wrongly is the judge's business; it lies there all the same
        links = None
    digest = hashlib.sha256()
    for piece in source.chunks(0, source.size):
        digest.update(piece)
    return Bundled(
        path=member.path,
        sha256=digest.hexdigest(),
        size=member.size,
        soname=links.soname if links else "",
        needed=links.needed if links else (),
        gpus=gpus,
    )
