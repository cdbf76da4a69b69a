"""What a path holds code for: its libraries, code objects and kpack archives, by path."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from rocbase.errors import CheckError
from rocwheel.wheels.choose import ProcessorCode
from rocwheel.wheels.devicecode.code_objects import fat_binaries
from rocwheel.wheels.devicecode.fatbin import FatBinary
from rocwheel.wheels.devicecode.kpack import Archive
from rocwheel.wheels.devicecode.kpack_reference import Reference
from rocwheel.wheels.devicecode.loose import loose
from rocwheel.wheels.kpacked import Distribution, MetadataReader, Place
from rocwheel.wheels.members import Member

_TARGET_IN_PATH = re.compile(r"gfx[0-9a-f]+(?:-[a-z]+)?(?:[:-][a-z]+[+-])*")


@dataclass(slots=True, kw_only=True)
class CodeTree:
    """What a path holds; libraries by path, with what each of their bundles holds code for, and the code
    objects that are embedded `alone`; `objects` are files of one each, by folder."""

    number: int
    libraries: dict[str, list[list[ProcessorCode]]] = field(default_factory=dict)
    alone: dict[str, list[ProcessorCode]] = field(default_factory=dict)
    objects: dict[str, list[tuple[str, ProcessorCode]]] = field(default_factory=dict)
    references: dict[Place, Reference] = field(default_factory=dict)
    archives: dict[Place, Archive] = field(default_factory=dict)
    unread: list[tuple[str, str]] = field(default_factory=list)
    distributions: tuple[Distribution, ...] = ()
    paths: list[str] = field(default_factory=list)


def read_tree(number: int, path: Path) -> CodeTree:
    """Return what the path of this number holds."""
    tree = CodeTree(number=number)
    metadata = MetadataReader()

    def failed(member: Member, error: CheckError) -> None:
        tree.paths.append(member.path)
        tree.unread.append((member.path, f"its code cannot be read: {error.message}; {error.cause}"))

    def without_code(member: Member) -> None:
        tree.paths.append(member.path)
        metadata.see(member)

    for member, _, binary in fat_binaries(path, heads=True, without_code=without_code, failed=failed):
        tree.paths.append(member.path)
        place = Place(number, member.path)
        tree.unread += [(member.path, reason) for reason in binary.unread]
        if binary.archive is not None:
            tree.archives[place] = binary.archive
        if binary.reference is not None:
            tree.references[place] = binary.reference
        if loose(member.path) is not None:
            continue
        if binary.lone is not None:
            code = ProcessorCode((binary.lone.target,), binary.lone.features)
            tree.objects.setdefault(_without_target(member.path), []).append((member.path, code))
        elif bundles := _code_by_bundle(binary):
            tree.libraries[member.path] = bundles
        alone = [
            ProcessorCode((embedded.code.target,), embedded.code.features)
            for embedded in binary.embedded
            if embedded.code
        ]
        if alone:
            tree.alone[member.path] = alone
    tree.distributions = tuple(metadata.distributions(archives=bool(tree.archives)))
    return tree


def _without_target(path: str) -> str:
    """What files for several targets have in common: a folder named after one, or else the file's name."""
    folder = path.rpartition("/")[0]
    common = _TARGET_IN_PATH.sub("*", folder)
    return common if common != folder else _TARGET_IN_PATH.sub("*", path)


def _code_by_bundle(binary: FatBinary) -> list[list[ProcessorCode]]:
    """What each bundle of a file holds code for."""
    return [
        [ProcessorCode((entry.target,), entry.features) for entry in bundle.code]
        for bundle in binary.all_bundles
        if bundle.code
    ]
