"""What the bytes of a wheel are for: host code, code for each GPU target, other files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rocwheel.wheels.devicecode.fatbin import FatBinary, check_name, fat_binary, may_hold_code
from rocwheel.wheels.devicecode.loose import loose
from rocwheel.wheels.inspection import natural
from rocwheel.wheels.members import Member, members

HOST, OTHER = "host code", "other files"
SEVERAL = "several targets"

_PROGRAMS = (b"\x7fELF", b"MZ", b"!<arch>\n")
"""How libraries and programs begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Bytes of a file that are for one thing: a target id, HOST, OTHER or SEVERAL; and its code objects."""

    what: str
    size: int
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileParts:
    """A file, its bytes, and what they are for."""

    path: str
    size: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Anatomy:
    """All files of `name`, the largest first. Sizes are in bytes, unpacked; `packed` is that of the file."""

    name: str
    packed: int
    files: tuple[FileParts, ...]

    @property
    def size(self) -> int:
        return sum(one.size for one in self.files)

    @property
    def totals(self) -> tuple[Part, ...]:
        """The parts of all files together, in the order of `in_order`."""
        size: Counter[str] = Counter()
        count: Counter[str] = Counter()
        for part in (part for one in self.files for part in one.parts):
            size[part.what] += part.size
            count[part.what] += part.count
        return tuple(Part(what=what, size=size[what], count=count[what]) for what in in_order(size))


def anatomy(path: Path) -> Anatomy:
    """What is in `path` (as `members` takes it).

    Raises InputError where it cannot be read, CheckError where something in it is damaged.
    """
    files = []
    for member in members(path):
        found = None
        if may_hold_code(member.head):
            found = fat_binary(member.open())
        else:
            check_name(member.path)
        parts = _parts(member.size, found) if found is not None else _whole(member)
        files.append(FileParts(path=member.path, size=member.size, parts=parts))
    return Anatomy(
        name=path.name,
        packed=path.stat().st_size if path.is_file() else 0,
        files=tuple(sorted(files, key=lambda one: (-one.size, one.path))),
    )


def in_order(names: Iterable[str]) -> list[str]:
    """Targets by number, then what is no target."""
    last = [HOST, SEVERAL, OTHER]
    return sorted(names, key=lambda one: (last.index(one) + 1 if one in last else 0, natural(one)))


def _whole(member: Member) -> tuple[Part, ...]:
    """What a file without fat binaries is for."""
    found, size = loose(member.path), member.size
    if found is None:
        return (Part(what=HOST if member.head.startswith(_PROGRAMS) else OTHER, size=size),)
    if len(found.targets) != 1:
        return (Part(what=SEVERAL, size=size),)
    return (Part(what=":".join((*found.targets, *found.features)), size=size),)


def _parts(size: int, binary: FatBinary) -> tuple[Part, ...]:
    """A compressed bundle's bytes are shared out as its unpacked code is; the rest is the host's."""
    if binary.lone is not None:
        return (Part(what=":".join((binary.lone.target, *binary.lone.features)), size=size, count=1),)
    share: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for packed in binary.archive.code if binary.archive else ():
        share[packed.target_id] += packed.packed_size
        count[packed.target_id] += 1
    for one in binary.embedded:
        if one.code is not None:
            target_id = ":".join((one.code.target, *one.code.features))
            share[target_id] += one.size
            count[target_id] += 1
    for bundle in binary.all_bundles:
        unpacked = max(1, bundle.unpacked_size)
        for entry in bundle.code:
            share[entry.target_id] += entry.size * bundle.size // unpacked if bundle.version else entry.size
            count[entry.target_id] += 1
    parts = [Part(what=one, size=share[one], count=count[one]) for one in in_order(share)]
    rest = OTHER if binary.archive else HOST
    return (*parts, Part(what=rest, size=max(0, size - sum(share.values()))))


def colours(parts: Iterable[Part]) -> Mapping[str, str]:
    """A colour for each thing: hues all around for targets, greys for the rest."""
    greys = {HOST: "hsl(215 12% 52%)", SEVERAL: "hsl(215 30% 62%)", OTHER: "hsl(215 8% 72%)"}
    targets = [part.what for part in parts if part.what not in greys]
    step = 360 / max(1, len(targets))
    return greys | {
        name: f"hsl({round(205 + number * step) % 360} 58% {(38, 46)[number % 2]}%)"
        for number, name in enumerate(targets)
    }
