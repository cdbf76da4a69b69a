"""A wheel taken apart: a neutral one without GPU code, and one for each target with its code."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rocwheel.errors import CheckError
from rocwheel.wheels.archive import open_wheel
from rocwheel.wheels.devicecode.bundle import is_bundle
from rocwheel.wheels.devicecode.fatbin import FatBinary, fat_binary, may_hold_code
from rocwheel.wheels.devicecode.loose import loose
from rocwheel.wheels.elf import MAGIC, RELOCATABLE, Elf
from rocwheel.wheels.metadata import RECORD, Headers, WheelName, dist_info_folder, parse_name, with_local
from rocwheel.wheels.retitle import named, retitled
from rocwheel.wheels.scratch import Scratch, scratch
from rocwheel.wheels.source import Source
from rocwheel.wheels.split.library import Apart, take_apart
from rocwheel.wheels.split.manifest import (
    NAME,
    NEUTRAL,
    Code,
    Library,
    Neutral,
    Whole,
    as_bytes,
    code_path,
    identity,
)
from rocwheel.wheels.write import File, in_order, write_wheel

HEAD = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A wheel that was written; `target` is "neutral" for the one without GPU code."""

    path: Path
    target: str
    size: int
    code_objects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The pieces of a wheel, and the files whose code stays in the neutral one, each with the reason."""

    pieces: tuple[Piece, ...]
    left: Mapping[str, str]


@dataclass(slots=True)
class _Pieces:
    """What is found, file by file."""

    neutral: list[File] = field(default_factory=list)
    code: defaultdict[str, list[File]] = field(default_factory=lambda: defaultdict(list))
    libraries: list[Library] = field(default_factory=list)
    whole: list[Whole] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)


def split_wheel(
    path: Path, out: Path, *, epoch: int, tell: Callable[[str], None] = lambda text: None
) -> Split:
    """Write the pieces of the wheel `path` into the folder `out`.

    `epoch` is the time of all files, in seconds since 1970; `tell` gets the name of each file that is taken
    apart. Raises CheckError where a library cannot be taken apart, and where there is no GPU code at all.
    """
    name = parse_name(path.name)
    out.mkdir(parents=True, exist_ok=True)
    with open_wheel(path) as files, scratch(out) as originals, scratch(out) as results:
        folder = dist_info_folder(file.path for file in files)
        ordered = [file for file in in_order(files) if file.path != f"{folder}/{RECORD}"]
        found = _Pieces()
        for file in ordered:
            _sort(file, name, folder, found, originals, results, tell)
        targets = sorted({*found.code, *(one.target for one in found.whole)})
        if not targets:
            raise CheckError(
                f"{path.name} has no GPU code that can be split off",
                cause="it is already neutral"
                if not found.left
                else "the code it has cannot be moved out of its files",
                next_step="use it as it is; `rocwheel inspect` shows what it contains",
                detail="\n".join(f"{one}: {why}" for one, why in found.left.items()),
            )
        manifest = Neutral(
            record=identity(file.row() for file in ordered),
            epoch=epoch,
            wheel=path.name,
            folder=folder,
            targets=tuple(targets),
            libraries=tuple(found.libraries),
            whole=tuple(found.whole),
        )
        written = [_write_neutral(out, name, manifest, found.neutral)]
        for target in targets:
            tell(target)
            written.append(_write_code(out, name, files, manifest, target, found.code[target]))
    return Split(pieces=tuple(written), left=found.left)


def _sort(
    file: File,
    name: WheelName,
    folder: str,
    found: _Pieces,
    originals: Scratch,
    results: Scratch,
    tell: Callable[[str], None],
) -> None:
    """Put a file, or its parts, where they belong."""
    head = next(iter(file.pieces()), b"")[:HEAD]
    told = loose(file.path)
    if told and len(told.targets) == 1:
        _whole(file, min(told.targets), found)
        return
    if not may_hold_code(head):
        found.neutral.append(file)
        return
    part = originals.put(file.pieces())
    source = originals.window(part.offset, part.size)
    fat = fat_binary(source)
    own = _targets(fat) if fat else set()
    if fat and len(own) == 1 and (fat.lone or is_bundle(head)):
        _whole(file, own.pop(), found)
    elif not own:
        found.neutral.append(file)
    elif why := reason_to_leave(source, head):
        found.left[file.path] = why
        found.neutral.append(file)
    else:
        assert fat
        tell(file.path)
        kept = f"{folder}/{NAME.removesuffix('.json')}/{len(found.libraries):04}"
        apart = take_apart(source, fat, file.path, kept, results)
        assert apart  # it has code
        _add(file, apart, name, found)


def _targets(fat: FatBinary) -> set[str]:
    lone = {fat.lone.target} if fat.lone else set()
    return lone | {entry.target for bundle in fat.bundles for entry in bundle.code}


def reason_to_leave(source: Source, head: bytes) -> str:
    """Why a file with code for several targets, or for one and for the host, is not taken apart; else ""."""
    if is_bundle(head):
        return "a file of bundles for several targets"
    if not head.startswith(MAGIC):
        return "a Windows library"
    return "an object file" if Elf(source).kind == RELOCATABLE else ""


def _whole(file: File, target: str, found: _Pieces) -> None:
    found.whole.append(Whole(path=file.path, target=target))
    found.code[target].append(file)


def _add(file: File, apart: Apart, name: WheelName, found: _Pieces) -> None:
    found.libraries.append(apart.library)
    found.neutral.append(replace(file, content=apart.neutral))
    found.neutral.append(File(path=apart.library.kept, content=apart.kept))
    for index, bundle in enumerate(apart.library.bundles):
        for entry in bundle.entries:
            if entry.target:
                path = code_path(code_folder(name, entry.target), file.path, index, entry.id)
                found.code[entry.target].append(File(path=path, content=apart.code[index, entry.id]))


def code_folder(name: WheelName, target: str) -> str:
    """The folder in which a target's wheel holds its code, and what that wheel is named after."""
    return re.sub(r"[-_.]+", "_", f"{name.name}_{target}").lower()


def _write_neutral(out: Path, name: WheelName, manifest: Neutral, files: Sequence[File]) -> Piece:
    version = with_local(name.version, NEUTRAL)
    metadata = next(file for file in files if file.path == f"{manifest.folder}/METADATA")
    added = [
        File(path=f"{manifest.folder}/{NAME}", content=as_bytes(manifest)),
        # As it was, since other spellings of a version are the same version.
        replace(metadata, path=f"{manifest.folder}/{NAME.removesuffix('.json')}/METADATA"),
    ]
    path = out / named(name, version)
    write_wheel(path, retitled([*files, *added], version), epoch=manifest.epoch)
    return Piece(path=path, target=NEUTRAL, size=path.stat().st_size, code_objects=0)


def _write_code(
    out: Path,
    name: WheelName,
    files: Sequence[File],
    manifest: Neutral,
    target: str,
    code: Sequence[File],
) -> Piece:
    own = replace(name, name=code_folder(name, target))
    folder = f"{own.name}-{own.version}.dist-info"
    wheel = next(Headers(file.read()) for file in files if file.path == f"{manifest.folder}/WHEEL")
    summary = f"Code for {target} of {name.name} {name.version}, which `rocwright wheel merge` puts into it"
    metadata = f"Metadata-Version: 2.1\nName: {own.name}\nVersion: {own.version}\nSummary: {summary}\n"
    added = [
        File(path=f"{folder}/METADATA", content=metadata.encode()),
        File(path=f"{folder}/WHEEL", content=wheel.replaced("Generator", ["rocwright"]).as_bytes()),
        File(path=f"{folder}/{NAME}", content=as_bytes(Code(record=manifest.record, target=target))),
    ]
    path = out / own.file_name
    write_wheel(path, [*code, *added], epoch=manifest.epoch)
    return Piece(path=path, target=target, size=path.stat().st_size, code_objects=len(code))
