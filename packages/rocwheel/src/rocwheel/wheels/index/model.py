"""The wheels of an index, and the file that remembers them between two runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple, Self

from pydantic import StringConstraints

from rocbase.files.atomic import write_atomic
from rocbase.files.bounds import MIB
from rocbase.folders.links import is_plain_file
from rocbase.model import Frozen
from rocwheel.version import __version__

MARKER = ".rocwright-index.json"
"""The file that marks a folder of pages as written by rocwheel."""

MOST_MARKER_BYTES = 64 * MIB
"""A wheel takes some 400 bytes of it: this is enough for 150,000."""

PAGES = "simple"
"""The folder of pages, in an index's root and in that of each view."""

YANKS = "yanked.toml"
"""The file next to the wheels that lists the withdrawn releases."""


class FileFingerprint(NamedTuple):
    """A file as its folder lists it; `path` is relative to the folder. A changed file differs in a field."""

    path: str
    size: int
    mtime_ns: int
    inode: int


class Span(NamedTuple):
    """Where a member's data lie in a wheel, and how they are packed (a zip's method): offset and bytes."""

    offset: int
    packed: int
    method: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel of the index. `project` and `version` are normalised.

    `targets` are those that it holds machine code for, None if it is for no GPU in particular: it holds no
    GPU code, or what it needs is in kpack archives of other wheels. `metadata` is where its METADATA lies.
    """

    seen: FileFingerprint
    sha256: str
    project: str
    version: str
    requires_python: str
    metadata_sha256: str
    metadata: Span
    targets: tuple[str, ...] | None

    @property
    def filename(self) -> str:
        return self.seen.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that is left out of the index, and the reason."""

    path: str
    what: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A wheel as pages list it. `yanked` is the reason of its withdrawal, None if it is not withdrawn."""

    wheel: Wheel
    yanked: str | None = None


# a view is a folder that leftovers are removed from: the file may come from a stranger
View = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$")]


class Marker(Frozen):
    """What a run wrote: wheels and yanks that its pages list, views, and whether it came to its end.

    `wheels_from` is the folder of the wheels, seen from the index, "" if they were copied into it, None
    if that is not known.
    """

    rocwheel: str = __version__
    whole: bool = False
    wheels_from: str | None = None
    views: tuple[View, ...] = ()
    yanks: tuple[tuple[str, str, str], ...] = ()
    wheels: tuple[Wheel, ...] = ()

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """Return the marker, None if there is none; a damaged one, or another rocwheel's, knows no wheels."""
        if not is_plain_file(path, path.parent):
            return None
        if path.stat().st_size > MOST_MARKER_BYTES:
            return cls(rocwheel="")
        try:
            marker = cls.model_validate_json(path.read_bytes())
        except ValueError:
            return cls(rocwheel="")
        # another rocwheel may read more from a wheel
        return (
            marker
            if marker.rocwheel == __version__
            else marker.model_copy(update={"wheels": (), "whole": False})
        )

    def save(self, path: Path) -> None:
        """Write the marker."""
        write_atomic(path, self.model_dump_json() + "\n")


def is_for(targets: Collection[str] | None, target: str) -> bool:
    """Return whether a wheel with code for `targets` is in a target's view.

    It is with code for the target, with SPIR-V, which the runtime compiles for any GPU, and without GPU code.
    """
    from rocwheel.wheels.choose import ANY_GPU

    return targets is None or target in targets or ANY_GPU in targets
