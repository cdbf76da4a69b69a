"""What is brought into a wheel so that it stands alone, as a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for.

    `roots` are folders that ROCm lies in, `search` further folders of libraries, `targets` the GPUs whose
    kernels are wanted (all where empty), by any of their names. `exclude` and `include` are patterns over
    names of libraries, or over places of other files; `only` over paths of the wheel's own libraries, to
    leave the others as they are. Each must match something.
    """

    roots: tuple[Path, ...] = ()
    search: tuple[Path, ...] = ()
    targets: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    system: bool = True
    """Whether the system's own folders are searched, last."""
    layout: Literal["", "linux", "windows"] = ""
    """Empty: what the wheel's file name says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """A library that is brought in.

    `place` is where in the wheel, `name` the name by which the loader knows it there, `soname` that by which
    it knew it, `was` the names by which it is asked for, `opened_as` those of them that are opened by name,
    `wanted_by` who asks.
    """

    place: str
    name: str
    soname: str
    source: Path
    was: tuple[str, ...]
    wanted_by: tuple[str, ...]
    opened_as: tuple[str, ...] = ()
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """In bytes."""
        return self.source.stat().st_size


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file that a library reads, or a program that it runs; `targets` are the GPUs that its path names."""

    place: str
    source: Path
    of: str
    targets: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """In bytes."""
        return self.source.stat().st_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What is changed in an ELF file of the new wheel: its RPATH, its name, the names of what it needs.

    `remove` are names that it is to need no more.
    """

    place: str
    rpath: tuple[str, ...]
    soname: str = ""
    replace: Mapping[str, str] = field(default_factory=dict)
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A library of no code that stands for another under the name by which that is opened."""

    place: str
    of: str
    machine: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """Something that was not found: its name, who wants it, and what for."""

    name: str
    wanted_by: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that is done to a wheel: `home` is the folder in it that what is brought lies in.

    `missing` must be found before the wheel can be made; `without` need not. `named` are libraries that are
    there, and whose names are held by others of which nobody knows that they open them. `kept_out` says of
    each library that is not brought in who has it: another wheel, the machine, or nobody: it was excluded.
    """

    home: str
    layout: str
    libraries: tuple[Brought, ...] = ()
    data: tuple[DataFile, ...] = ()
    aliases: tuple[Alias, ...] = ()
    edits: tuple[Edit, ...] = ()
    licences: Mapping[str, Path] = field(default_factory=dict)
    missing: tuple[Lacking, ...] = ()
    without: tuple[Lacking, ...] = ()
    named: tuple[Lacking, ...] = ()
    kept_out: Mapping[str, str] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Bytes of files left out, by the target that they are for."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Files that are written or changed as text: place -> what they hold then."""
    platform: str = ""
    """The platform tags of the new wheel, joined by dots."""

    @property
    def size(self) -> int:
        """What is brought in, in bytes, before it is packed."""
        return sum(library.size for library in self.libraries) + sum(file.size for file in self.data)
