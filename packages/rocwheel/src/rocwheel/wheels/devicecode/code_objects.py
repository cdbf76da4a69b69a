"""GPU code objects in wheels, archives, folders and files, and whether they are exactly those asked for."""

from __future__ import annotations

import itertools
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rocbase.errors import CheckError, InputError
from rocwheel.wheels.devicecode import bundle as offload
from rocwheel.wheels.devicecode.embedded import Embedded
from rocwheel.wheels.devicecode.fatbin import NAMED_CODE, FatBinary, check_name, fat_binary, may_hold_code
from rocwheel.wheels.members import Member, members, plain_head
from rocwheel.wheels.source import ByteSource

if TYPE_CHECKING:
    from rocwheel.wheels.devicecode.kpack import Archive, Packed


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeObject:
    """Machine code for one GPU target.

    `path` is the file that holds it, seen from the wheel, archive or folder; `index` counts that file's
    bundles from 0 and is None for a file that is itself one code object. `features` are sorted:
    ("sramecc+", "xnack-"). `size` is in bytes, unpacked. `abi` is the code object version, 0 where that is
    not told (SPIR-V); `generic_version` that of a generic target, 0 of
    others. `sha256` is empty where it was not asked for. Of a kpack archive, `library` names the one that the
    code is of (`lib/x.so#0`), and `index` counts the libraries. `section` names where in a library code lies
    that is embedded; `index` goes on counting for its bundles, and is None for a code object alone.
    """

    path: str
    target: str
    features: tuple[str, ...]
    size: int
    index: int | None
    abi: int = 0
    generic_version: int = 0
    sha256: str = ""
    library: str = ""
    section: str = ""

    @property
    def target_id(self) -> str:
        """As compilers take it: gfx90a:sramecc+:xnack-."""
        return ":".join((self.target, *self.features))


def fat_binaries(
    path: Path,
    *,
    hashes: bool = False,
    heads: bool = False,
    without_code: Callable[[Member], None] = lambda member: None,
    failed: Callable[[Member, CheckError], None] | None = None,
) -> Iterator[tuple[Member, ByteSource, FatBinary]]:
    """The files with GPU code in a wheel, archive, folder or file; each with its content and what is there.

    `hashes` and `heads` are as for `fat_binary`. `without_code` gets the files that have none. Raises
    InputError where `path` cannot be read, CheckError where something in it is damaged; with `failed`, a file
    whose code cannot be read is handed to that instead.
    """

    def read(source: ByteSource) -> FatBinary | None:
        return fat_binary(source, hashes=hashes, heads=heads)

    for member, cached in _large_first(members(path), read):
        binary = None
        try:
            if may_hold_code(member.head):
                source = member.open()
                binary = cached[0] if cached else read(source)
            else:
                check_name(member.path)
        except CheckError as error:
            if failed is None:
                raise
            failed(member, error)
            continue
        if binary is not None:
            yield member, source, binary
        else:
            without_code(member)


LISTS = (".txt", ".in", ".toml", ".lock", ".yml", ".yaml")
"""How lists of Python packages end: they are given in place of wheels by mistake."""


def refuse_other(path: Path) -> None:
    """Raise InputError for a lone file of a kind that no GPU code is looked for in.

    "No GPU code" must mean that something was read, and not that a list or a text was given by mistake.
    """
    head = plain_head(path)
    if head is None or may_hold_code(head) or path.name.endswith(NAMED_CODE):
        return
    from rocwheel.wheels.devicecode.loose import loose  # here: it loads pydantic, which most files need not

    if loose(path.name):
        return
    raise InputError(
        f"{path} is no wheel, archive, library, program or code object",
        cause="its first bytes are those of none of these",
        next_step=f"rocwright check {shlex.quote(str(path))} reads lists of packages"
        if path.suffix in LISTS
        else "name a wheel, a library, an archive, a folder or an environment",
        subject=str(path),
    )


def _large_first(
    stream: Iterator[Member], read: Callable[[ByteSource], FatBinary | None]
) -> Iterator[tuple[Member, tuple[FatBinary | None] | None]]:
    """The members in their order, with what was read of a wheel's large ones in several processes."""
    first = next(stream, None)
    if first is None:
        return
    if first.packed is None:
        # they can be opened one after the other only, or need no inflating
        yield from ((member, None) for member in itertools.chain([first], stream))
        return
    from rocwheel.wheels.devicecode.beside import read_beside  # of wheels alone

    all_ = [first, *stream]
    candidates = [member for member in all_ if may_hold_code(member.head)]
    cached = {candidates[number].path: (binary,) for number, binary in read_beside(candidates, read).items()}
    yield from ((member, cached.get(member.path)) for member in all_)


class Unseen:
    """Which code was seen and is not read, gathered from file to file.

    Code in kpack archives counts as read where there are archives.
    """

    def __init__(self) -> None:
        self._files: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
        self._archives = False

    def see(self, path: str, binary: FatBinary) -> None:
        """A file with code."""
        self._archives |= binary.archive is not None
        self.add(path, binary.unread, binary.unseen)

    def add(self, path: str, unread: Sequence[str], alone: Sequence[str] = ()) -> None:
        """Reasons of one file; `alone` are those where no archives are here, `unread` where they are."""
        self._files.append((path, tuple(unread), tuple(alone or unread)))

    @property
    def reasons(self) -> list[str]:
        """A line for each, with the name of the file."""
        return [
            f"{path}: {reason}"
            for path, unread, alone in self._files
            for reason in (unread if self._archives else alone)
        ]


def code_objects(path: Path, *, hashes: bool = False, unseen: Unseen | None = None) -> list[CodeObject]:
    """Every code object in a wheel, archive, folder or file, by path and place in it; as `fat_binaries`.

    `hashes` reads all code for its sha256, where else headers are enough. `unseen` hears of code that is not
    among them.
    """
    unseen = unseen or Unseen()
    if hashes:
        from rocbase.files.atomic import sha256_bytes

        objects = [
            replace(code_object, sha256=sha256_bytes(code))
            for code_object, code in read_code(path, unseen=unseen)
        ]
    else:
        objects = []
        for member, _, binary in fat_binaries(path):
            unseen.see(member.path, binary)
            objects += objects_in(member.path, binary)
    return sorted(objects, key=lambda code: (code.path, -1 if code.index is None else code.index))


def read_code(
    path: Path, select: Callable[[CodeObject], bool] = lambda code: True, unseen: Unseen | None = None
) -> Iterator[tuple[CodeObject, bytes]]:
    """The code objects that are wanted, each with its bytes; as `fat_binaries`, with hashes checked.

    `unseen` hears of code that is not among them.
    """
    for member, source, binary in fat_binaries(path, hashes=True):
        if unseen is not None:
            unseen.see(member.path, binary)
        if binary.lone is not None:
            (code_object,) = objects_in(member.path, binary)
            if select(code_object):
                yield code_object, source.read_at(0, source.size)
        for index, section, bundle in _bundles(binary):
            by_entry = _of_bundle(member.path, index, bundle, section)
            listed = {key: code_object for key, code_object in by_entry.items() if select(code_object)}
            for entry, code in offload.contents(source, bundle, _named(listed)):
                yield listed[entry.id], code
        for place, code_object in _embedded(member.path, binary):
            if select(code_object):
                yield code_object, source.read_at(place.offset, place.size)
        if binary.archive is not None:
            from rocwheel.wheels.devicecode import kpack

            by_place = dict(_of_archive(member.path, binary.archive))
            for packed, code in kpack.contents(source, binary.archive, _selector(by_place, select)):
                yield by_place[packed], code


def _selector(
    by_place: Mapping[Packed, CodeObject], select: Callable[[CodeObject], bool]
) -> Callable[[Packed], bool]:
    return lambda packed: select(by_place[packed])


def _named(ids: Collection[str]) -> Callable[[offload.BundleEntry], bool]:
    return lambda entry: entry.id in ids


def check_targets(path: Path, targets: Sequence[str]) -> list[str]:
    """What keeps `path` from holding code for exactly `targets`; nothing where it does.

    Every bundle must hold each target and no other. `targets` names targets as compilers take them,
    with features where those are fixed: gfx1151, gfx90a:xnack-.
    """
    expected = {_normal(target) for target in targets}
    objects: list[CodeObject] = []
    problems = []
    for member, _, binary in fat_binaries(path):
        objects += objects_in(member.path, binary)
        problems += [f"{member.path}: {reason}" for reason in binary.unseen]
    if not objects and not problems:
        return (
            [f"{path.name} contains no GPU code; expected: {', '.join(sorted(expected))}"] if expected else []
        )
    bundles: dict[str, dict[int | None, set[str]]] = defaultdict(lambda: defaultdict(set))
    for code_object in sorted(objects, key=lambda code: code.path):
        bundles[code_object.path][code_object.index].add(code_object.target_id)
    for name, by_index in bundles.items():
        differences = Counter(
            text for index, present in by_index.items() for text in _differences(index, present, expected)
        )
        for text, times in differences.items():
            share = "" if None in by_index else f" ({times} of {len(by_index)} bundles)"
            problems.append(f"{name}: {text}{share}")
    if all(code.index is None for code in objects) and (
        missing := expected - {code.target_id for code in objects}
    ):
        problems.append(f"{path.name}: no code for {', '.join(sorted(missing))}")
    return problems


def _differences(index: int | None, present: set[str], expected: set[str]) -> Iterator[str]:
    # A file that is one code object can hold one target; the others have files of their own.
    if index is not None and (missing := expected - present):
        yield f"no code for {', '.join(sorted(missing))}"
    if extra := present - expected:
        yield f"code for {', '.join(sorted(extra))}, which was not asked for"


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
    for index, section, bundle in _bundles(binary):
        yield from _of_bundle(path, index, bundle, section).values()
    yield from (code_object for _, code_object in _embedded(path, binary))
    if binary.archive is not None:
        yield from (code_object for _, code_object in _of_archive(path, binary.archive))


def _bundles(binary: FatBinary) -> Iterator[tuple[int, str, offload.Bundle]]:
    """The bundles of a file with their numbers, and the sections of those that are embedded."""
    placed = [("", bundle) for bundle in binary.bundles]
    placed += [
        (embedded.section, embedded.bundle) for embedded in binary.embedded if embedded.bundle is not None
    ]
    for index, (section, bundle) in enumerate(placed):
        yield index, section, bundle


def _embedded(path: str, binary: FatBinary) -> Iterator[tuple[Embedded, CodeObject]]:
    """The code objects that are embedded alone."""
    for embedded in binary.embedded:
        if embedded.code is not None:
            yield (
                embedded,
                CodeObject(
                    path=path,
                    target=embedded.code.target,
                    features=embedded.code.features,
                    size=embedded.size,
                    index=None,
                    abi=embedded.code.abi,
                    generic_version=embedded.code.generic_version,
                    section=embedded.section,
                ),
            )


def _of_archive(path: str, archive: Archive) -> Iterator[tuple[Packed, CodeObject]]:
    """The code objects of a kpack archive."""
    numbers: dict[str, int] = {}
    for packed in archive.code:
        yield (
            packed,
            CodeObject(
                path=path,
                target=packed.target,
                features=packed.features,
                size=packed.size,
                index=numbers.setdefault(packed.name, len(numbers)),
                abi=packed.header.abi if packed.header else 0,
                generic_version=packed.header.generic_version if packed.header else 0,
                library=packed.name,
            ),
        )


def _of_bundle(path: str, index: int, bundle: offload.Bundle, section: str) -> dict[str, CodeObject]:
    """The code objects of a bundle by the ids of their entries."""
    return {
        entry.id: CodeObject(
            path=path,
            target=entry.target,
            features=entry.features,
            size=entry.size,
            index=index,
            abi=entry.header.abi if entry.header else 0,
            generic_version=entry.header.generic_version if entry.header else 0,
            section=section,
        )
        for entry in bundle.code
    }
