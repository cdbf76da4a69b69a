"""GPU code objects in wheels, archives, folders and files, and whether they are exactly those asked for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rocwheel.wheels.devicecode import bundle as offload
from rocwheel.wheels.devicecode.fatbin import FatBinary, fat_binary, may_hold_code
from rocwheel.wheels.members import Member, members
from rocwheel.wheels.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeObject:
    """Machine code for one GPU target.

    `path` is the file that holds it, seen from the wheel, archive or folder; `index` counts that file's
    bundles from 0 and is None for a file that is itself one code object. `features` are sorted:
    ("sramecc+", "xnack-"). `size` is in bytes, unpacked. `abi` is the code object version, 0 where that is
    not told (SPIR-V, entries of the oldest toolchains); `generic_version` that of a generic target, 0 of
    others. `sha256` is empty where it was not asked for.
    """

    path: str
    target: str
    features: tuple[str, ...]
    size: int
    index: int | None
    abi: int = 0
    generic_version: int = 0
    sha256: str = ""

    @property
    def target_id(self) -> str:
        """As compilers take it: gfx90a:sramecc+:xnack-."""
        return ":".join((self.target, *self.features))


def fat_binaries(
    path: Path, *, hashes: bool = False, others: Callable[[Member], None] = lambda member: None
) -> Iterator[tuple[Member, Source, FatBinary]]:
    """The files with GPU code in a wheel, archive, folder or file; each with its content and what is there.

    `others` gets the files that have none. Raises InputError where `path` cannot be read, CheckError where
    something in it is damaged.
    """
    for member in members(path):
        if may_hold_code(member.head):
            source = member.open()
            found = fat_binary(source, hashes=hashes)
            if found is not None:
                yield member, source, found
                continue
        others(member)


def code_objects(path: Path, *, hashes: bool = False) -> list[CodeObject]:
    """Every code object in a wheel, archive, folder or file, by path and place in it; as `fat_binaries`.

    `hashes` reads all code for its sha256, where else headers are enough.
    """
    if hashes:
        from rocwheel.files.atomic import sha256_bytes

        found = [replace(one, sha256=sha256_bytes(code)) for one, code in read_code(path)]
    else:
        found = [one for member, _, binary in fat_binaries(path) for one in objects_in(member.path, binary)]
    return sorted(found, key=lambda one: (one.path, -1 if one.index is None else one.index))


def read_code(
    path: Path, wanted: Callable[[CodeObject], bool] = lambda one: True
) -> Iterator[tuple[CodeObject, bytes]]:
    """The code objects that are wanted, each with its bytes; as `fat_binaries`, with hashes checked."""
    for member, source, binary in fat_binaries(path, hashes=True):
        if binary.lone is not None:
            (one,) = objects_in(member.path, binary)
            if wanted(one):
                yield one, source.read_at(0, source.size)
        for index, bundle in enumerate(binary.bundles):
            listed = {key: one for key, one in _of_bundle(member.path, index, bundle).items() if wanted(one)}
            for entry, code in offload.contents(source, bundle, _named(listed)):
                yield listed[entry.id], code


def _named(ids: Collection[str]) -> Callable[[offload.Entry], bool]:
    return lambda entry: entry.id in ids


def check_targets(path: Path, wanted: Sequence[str]) -> list[str]:
    """What keeps `path` from holding code for exactly the targets `wanted`; nothing where it does.

    Every bundle must hold each target and no other. `wanted` names targets as compilers take them,
    with features where those are fixed: gfx1151, gfx90a:xnack-.
    """
    asked = {_normal(target) for target in wanted}
    found = code_objects(path)
    if not found:
        return [f"{path.name} contains no GPU code; expected: {', '.join(sorted(asked))}"] if asked else []
    bundles: dict[str, dict[int | None, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one in found:
        bundles[one.path][one.index].add(one.target_id)
    problems = []
    for name, by_index in bundles.items():
        told = Counter(text for index, held in by_index.items() for text in _differences(index, held, asked))
        for text, times in told.items():
            share = "" if None in by_index else f" ({times} of {len(by_index)} bundles)"
            problems.append(f"{name}: {text}{share}")
    if all(one.index is None for one in found) and (missing := asked - {one.target_id for one in found}):
        problems.append(f"{path.name}: no code for {', '.join(sorted(missing))}")
    return problems


def _differences(index: int | None, held: set[str], asked: set[str]) -> Iterator[str]:
    # A file that is one code object can hold one target; the others have files of their own.
    if index is not None and (missing := asked - held):
        yield f"no code for {', '.join(sorted(missing))}"
    if other := held - asked:
        yield f"code for {', '.join(sorted(other))}, which was not asked for"


def _normal(target: str) -> str:
    name, *features = target.split(":")
    return ":".join((name, *sorted(features)))


def objects_in(path: str, binary: FatBinary) -> Iterator[CodeObject]:
    """The code objects of one file, in their order."""
    if (lone := binary.lone) is not None:
        yield CodeObject(
            path=path,
            target=lone.target,
            features=lone.features,
            size=binary.size,
            index=None,
            abi=lone.abi,
            generic_version=lone.generic_version,
        )
    for index, bundle in enumerate(binary.bundles):
        yield from _of_bundle(path, index, bundle).values()


def _of_bundle(path: str, index: int, bundle: offload.Bundle) -> dict[str, CodeObject]:
    """The code objects of a bundle by the ids of their entries."""
    return {
        one.id: CodeObject(
            path=path,
            target=one.target,
            features=one.features,
            size=one.size,
            index=index,
            abi=one.header.abi if one.header else 0,
            generic_version=one.header.generic_version if one.header else 0,
        )
        for one in bundle.code
    }
