"""A wheel taken apart as AMD does it: its libraries without code, and a wheel of kpack archives for each GPU.

They are installed together as they are: the archives come to lie where the libraries look for them.
Source: ROCm/rocm-systems, shared/kpack/python/rocm_kpack/wheel_splitter.py.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode import bundle as offload
from rocwheel.wheels.devicecode import kpack_writer
from rocwheel.wheels.devicecode.fatbin import BUNDLES, WRAPPERS, FatBinary
from rocwheel.wheels.devicecode.kpack_reference import (
    FOLDER,
    LARGEST,
    PLACEHOLDER,
    SECTION,
    WRAPPER_MAGIC,
    Reference,
)
from rocwheel.wheels.elf import HEADER_SIZE, Elf
from rocwheel.wheels.kpacked import installed
from rocwheel.wheels.metadata import Headers, WheelName, parse_name
from rocwheel.wheels.parts import Joined, bytes_part, pieces, replaced
from rocwheel.wheels.scratch import Scratch
from rocwheel.wheels.slim.cut import cannot
from rocwheel.wheels.slim.relink import Renewed, relinked
from rocwheel.wheels.source import ByteSource, MemorySource
from rocwheel.wheels.split.walk import Piece, Split, Walk, opened
from rocwheel.wheels.write import WheelFile, write_wheel

HOST = "host"
"""What stands for the target of the wheel with the libraries."""


@dataclass(slots=True)
class _Pieces:
    """What is found: files of the host wheel and of each target's; code by folder of archives and target."""

    name: WheelName
    walk: Walk
    takes_archives: bool = True
    host: list[WheelFile] = field(default_factory=list)
    device: defaultdict[str, list[WheelFile]] = field(default_factory=lambda: defaultdict(list))
    code: dict[str, dict[str, list[kpack_writer.KpackCode]]] = field(default_factory=dict)

    def keep(self, file: WheelFile) -> None:
        self.host.append(file)

    def give(self, file: WheelFile, target: str) -> None:
        self.device[target].append(file)

    def reason_to_stay(self, file: WheelFile, fat: FatBinary) -> str:
        return _misplaced(file.path) or reason_to_stay(fat)

    def take_apart(self, file: WheelFile, source: ByteSource, fat: FatBinary) -> None:
        place = PurePosixPath(installed(file.path))
        top = place.parts[0] if len(place.parts) > 1 else ""
        inner = place.relative_to(top) if top else place
        pattern = f"{FOLDER}/{_group(self.name)}_{PLACEHOLDER}.kpack"
        reference = Reference(name=inner.as_posix(), search=("../" * (len(inner.parts) - 1) + pattern,))
        kpacked = into_archives(source, fat, reference, self.walk.results)
        for target, code in kpacked.code.items():
            self.code.setdefault(top, {}).setdefault(target, []).extend(code)
        part = self.walk.results.put(pieces(kpacked.content))
        library = self.walk.results.window(part.offset, part.size)
        self.host.append(replace(file, content=library))


def split_device_wheels(
    path: Path, out: Path, *, epoch: int, tell: Callable[[str], None] = lambda text: None
) -> Split:
    """Write the wheel `path` as a host wheel and device wheels into the folder `out`.

    `epoch` is the time of all files, in seconds since 1970; `tell` gets the name of each file that is taken
    apart. Raises CheckError where a library cannot be taken apart, and where there is no GPU code at all.
    """
    name = parse_name(path.name)
    out.mkdir(parents=True, exist_ok=True)
    if (out / path.name).exists() and (out / path.name).samefile(path):
        raise CheckError(
            f"the host wheel would take the place of {path.name}",
            cause="it has the same name, as installers must find it under that",
            next_step="give another folder with -o",
        )
    with opened(path, out) as walk:
        sorter = _Pieces(name, walk)
        walk.sort(sorter, tell)
        targets = sorted(
            {
                *sorter.device,
                *(
                    target_id.partition(":")[0]
                    for by_target in sorter.code.values()
                    for target_id in by_target
                ),
            }
        )
        if not targets:
            raise walk.nothing("a host wheel already")
        if all(_group(name).endswith(_device_suffix(target)) for target in targets):
            raise walk.nothing("a device wheel already")
        written = [_write_host(out, name, walk.folder, sorter.host, targets, epoch)]
        for target in targets:
            tell(target)
            written.append(_write_device(out, name, target, sorter, epoch))
    return Split(pieces=tuple(written), left=walk.left)


def _misplaced(path: str) -> str:
    """Why archives cannot lie beside a file; "" where they can."""
    return "it is not installed among the packages" if ".data/" in installed(path) else ""


def _group(name: WheelName) -> str:
    return name.name.replace("-", "_").lower()


def _device(name: WheelName, target: str) -> str:
    """The project of the wheel with a target's code."""
    return f"{_group(name)}{_device_suffix(target)}".replace("_", "-")


def _device_suffix(target: str) -> str:
    """How the names of wheels with a target's code end, as they stand in file names."""
    return f"_device_{target}".replace("-", "_").lower()


def _write_host(
    out: Path, name: WheelName, folder: str, files: Sequence[WheelFile], targets: Sequence[str], epoch: int
) -> Piece:
    written = []
    for file in files:
        if file.path == f"{folder}/METADATA":
            headers = Headers(file.read())
            extras = [f"device-{target}" for target in targets]
            needs = [
                f'{_device(name, target)} == {name.version}; extra == "device-{target}"' for target in targets
            ]
            headers = headers.replaced("Provides-Extra", [*headers.all("Provides-Extra"), *extras])
            headers = headers.replaced("Requires-Dist", [*headers.all("Requires-Dist"), *needs])
            written.append(replace(file, content=headers.as_bytes()))
        else:
            written.append(file)
    path = out / name.file_name
    write_wheel(path, written, epoch=epoch)
    return Piece(path=path, target=HOST, size=path.stat().st_size, code_objects=0)


def _write_device(out: Path, name: WheelName, target: str, sorter: _Pieces, epoch: int) -> Piece:
    project = _device(name, target)
    own = replace(name, name=project.replace("-", "_"))
    folder = f"{own.name}-{own.version}.dist-info"
    files = list(sorter.device[target])
    count = len(files)
    for top, by_target in sorter.code.items():
        for target_id, code in sorted(by_target.items()):
            if target_id.partition(":")[0] == target:
                place = f"{FOLDER}/{_group(name)}_{target_id}.kpack"
                content = kpack_writer.archive(code, _group(name), sorter.walk.results)
                files.append(WheelFile(path=f"{top}/{place}" if top else place, content=content))
                count += len(code)
    metadata = (
        f"Metadata-Version: 2.1\nName: {project}\nVersion: {name.version}\n"
        f"Summary: Code for {target} of {name.name} {name.version}, in kpack archives\n"
        f"Requires-Dist: {name.name} == {name.version}\n"
    )
    wheel = sorter.walk.headers().replaced("Generator", ["rocwheel"])
    files += [
        WheelFile(path=f"{folder}/METADATA", content=metadata.encode()),
        WheelFile(
            path=f"{folder}/WHEEL",
            content=wheel.as_bytes(),
        ),
    ]
    path = out / own.file_name
    write_wheel(path, files, epoch=epoch)
    return Piece(path=path, target=target, size=path.stat().st_size, code_objects=count)


_SECTION_SIZE = 64
_WRAPPER_SIZE = 24
_UNUSED_AT = 16
"""Where a wrapper holds the address that one of a bundle has no use for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kpacked:
    """What is left of a library, and its code by target, in the order of its wrappers."""

    content: ByteSource
    code: Mapping[str, Sequence[kpack_writer.KpackCode]]


def reason_to_stay(fat: FatBinary) -> str:
    """Why the code of a library cannot go into archives; "" where it can."""
    if any(wrapper.number is not None for wrapper in fat.wrappers):
        return "part of its code is in kpack archives already"
    if not fat.wrappers or fat.unreached:
        return "it has bundles to which no wrapper leads"
    offsets = {bundle.offset for bundle in fat.bundles}
    if any(wrapper.bundle not in offsets for wrapper in fat.wrappers):
        return "a wrapper leads to no bundle of its own"
    if any(entry.size for bundle in fat.bundles for entry in bundle.entries if not entry.target):
        return "a bundle has content for the host"
    return ""


def into_archives(source: ByteSource, fat: FatBinary, reference: Reference, results: Scratch) -> Kpacked:
    """The library named by `reference`, without its code. Raises CheckError where that cannot be removed."""
    content = MemorySource(kpack_writer.reference(reference))
    if content.size > LARGEST:
        raise CheckError(
            "the reference to its archives would be too long",
            cause=f"the runtime reads {LARGEST:,} bytes of it",
            next_step="give the file a shorter path",
            subject=source.subject,
        )
    file = Elf(source)
    sections: dict[int, list[Renewed]] = defaultdict(list)
    for bundle in fat.bundles:
        index = next(
            section.index
            for section in file.named(BUNDLES)
            if section.offset <= bundle.offset < section.offset + section.size
        )
        sections[index].append(Renewed(offset=bundle.offset, content=content))
    less = relinked(file, sections, [], instead=content)
    by_target: dict[str, list[kpack_writer.KpackCode]] = defaultdict(list)
    for target, code in _code(source, fat, reference, results):
        by_target[target].append(code)
    return Kpacked(content=_marked(less), code=by_target)


def _code(
    source: ByteSource, fat: FatBinary, reference: Reference, results: Scratch
) -> Iterator[tuple[str, kpack_writer.KpackCode]]:
    """The code of each wrapper, by target; wrappers of one bundle have the same."""
    wrappers: dict[int | None, list[int]] = defaultdict(list)
    for number, wrapper in enumerate(fat.wrappers):
        wrappers[wrapper.bundle].append(number)
    for bundle in fat.bundles:
        for entry, content in _entries(source, bundle, results):
            for number in wrappers[bundle.offset]:
                yield (
                    entry.target_id,
                    kpack_writer.KpackCode(
                        name=f"{reference.name}#{number}", target_id=entry.target_id, content=content
                    ),
                )


def _entries(
    source: ByteSource, bundle: offload.Bundle, results: Scratch
) -> Iterator[tuple[offload.BundleEntry, ByteSource]]:
    if not bundle.compression:
        for entry in bundle.code:
            yield entry, source.window(bundle.offset + entry.offset, entry.size)
        return
    for entry, content in offload.contents(source, bundle):
        part = results.put([content])
        yield entry, results.window(part.offset, part.size)


def _marked(source: Joined) -> ByteSource:
    """The library with wrappers of kpack, and the section of bundles called that of the reference."""
    file = Elf(source)
    edits: dict[int, bytes] = {}
    for number, wrapper in enumerate(_wrappers(file)):
        edits[wrapper] = struct.pack("<I", WRAPPER_MAGIC)
        edits[wrapper + _UNUSED_AT] = struct.pack("<Q", number)
    header = source.read_at(0, HEADER_SIZE)
    (table_at,) = struct.unpack_from("<Q", header, 40)
    (index,) = struct.unpack_from("<H", header, 62)
    if index >= len(file.sections):
        raise cannot(source.subject, "it has more sections than its header can count")
    names = file.sections[index]
    text = source.read_at(names.offset, names.size)
    for section in file.named(BUNDLES):
        edits[table_at + section.index * _SECTION_SIZE] = struct.pack("<I", len(text))
    text += SECTION.encode() + b"\0"
    # the names go behind all else, where they have room for one more
    edits[table_at + names.index * _SECTION_SIZE + 24] = struct.pack("<QQ", source.size, len(text))
    marked = replaced(source, {offset: [bytes_part(data)] for offset, data in edits.items()})
    return Joined([*marked.parts, bytes_part(text)], source.subject)


def _wrappers(file: Elf) -> Iterator[int]:
    """Where each wrapper lies in the file."""
    for section in file.named(WRAPPERS):
        end = section.offset + section.size // _WRAPPER_SIZE * _WRAPPER_SIZE
        yield from range(section.offset, end, _WRAPPER_SIZE)
