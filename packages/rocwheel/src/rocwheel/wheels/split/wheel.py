"""A wheel taken apart: a neutral one without GPU code, and one for each target with its code."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rocwheel.wheels.devicecode.fatbin import FatBinary
from rocwheel.wheels.metadata import WheelName, parse_name, with_local
from rocwheel.wheels.retitle import named, retitled
from rocwheel.wheels.source import ByteSource
from rocwheel.wheels.split.library import take_apart
from rocwheel.wheels.split.manifest import (
    NAME,
    NEUTRAL,
    CodeManifest,
    Neutral,
    SplitLibrary,
    Whole,
    as_bytes,
    code_path,
    identity,
)
from rocwheel.wheels.split.walk import Piece, Split, Walk, opened
from rocwheel.wheels.write import WheelFile, write_wheel


@dataclass(slots=True)
class _Pieces:
    """What is found, file by file."""

    name: WheelName
    walk: Walk
    takes_archives: bool = False
    neutral: list[WheelFile] = field(default_factory=list)
    code: defaultdict[str, list[WheelFile]] = field(default_factory=lambda: defaultdict(list))
    libraries: list[SplitLibrary] = field(default_factory=list)
    whole: list[Whole] = field(default_factory=list)

    def keep(self, file: WheelFile) -> None:
        self.neutral.append(file)

    def give(self, file: WheelFile, target: str) -> None:
        self.whole.append(Whole(path=file.path, target=target))
        self.code[target].append(file)

    def reason_to_stay(self, file: WheelFile, fat: FatBinary) -> str:
        return ""

    def take_apart(self, file: WheelFile, source: ByteSource, fat: FatBinary) -> None:
        kept_path = f"{self.walk.folder}/{NAME.removesuffix('.json')}/{len(self.libraries):04}"
        apart = take_apart(source, fat, file.path, kept_path, self.walk.results)
        assert apart  # it has code
        self.libraries.append(apart.library)
        self.neutral.append(replace(file, content=apart.neutral))
        self.neutral.append(WheelFile(path=apart.library.kept, content=apart.kept))
        for index, bundle in enumerate(apart.library.bundles):
            for entry in bundle.entries:
                if entry.target:
                    path = code_path(code_folder(self.name, entry.target), file.path, index, entry.id)
                    self.code[entry.target].append(WheelFile(path=path, content=apart.code[index, entry.id]))


def split_wheel(
    path: Path, out: Path, *, epoch: int, tell: Callable[[str], None] = lambda text: None
) -> Split:
    """Write the pieces of the wheel `path` into the folder `out`.

    `epoch` is the time of all files, in seconds since 1970; `tell` gets the name of each file that is taken
    apart. Raises CheckError where a library cannot be taken apart, and where there is no GPU code at all.
    """
    name = parse_name(path.name)
    with opened(path, out) as walk:
        sorter = _Pieces(name, walk)
        walk.sort(sorter, tell)
        targets = sorted({*sorter.code, *(entry.target for entry in sorter.whole)})
        if not targets:
            raise walk.nothing("already neutral")
        manifest = Neutral(
            record=identity(file.row() for file in walk.files),
            epoch=epoch,
            wheel=path.name,
            folder=walk.folder,
            targets=tuple(targets),
            libraries=tuple(sorter.libraries),
            whole=tuple(sorter.whole),
        )
        written = [_write_neutral(out, name, manifest, sorter.neutral)]
        for target in targets:
            tell(target)
            written.append(_write_code(out, name, walk, manifest, target, sorter.code[target]))
    return Split(pieces=tuple(written), left=walk.left)


def code_folder(name: WheelName, target: str) -> str:
    """The folder in which a target's wheel holds its code, and what that wheel is named after."""
    return re.sub(r"[-_.]+", "_", f"{name.name}_{target}").lower()


def _write_neutral(out: Path, name: WheelName, manifest: Neutral, files: Sequence[WheelFile]) -> Piece:
    version = with_local(name.version, NEUTRAL)
    metadata = next(file for file in files if file.path == f"{manifest.folder}/METADATA")
    added = [
        WheelFile(path=f"{manifest.folder}/{NAME}", content=as_bytes(manifest)),
        # As it was, since other spellings of a version are the same version.
        replace(metadata, path=f"{manifest.folder}/{NAME.removesuffix('.json')}/METADATA"),
    ]
    path = out / named(name, version)
    write_wheel(path, retitled([*files, *added], version), epoch=manifest.epoch)
    return Piece(path=path, target=NEUTRAL, size=path.stat().st_size, code_objects=0)


def _write_code(
    out: Path,
    name: WheelName,
    walk: Walk,
    manifest: Neutral,
    target: str,
    code: Sequence[WheelFile],
) -> Piece:
    own = replace(name, name=code_folder(name, target))
    folder = f"{own.name}-{own.version}.dist-info"
    summary = f"Code for {target} of {name.name} {name.version}, which `rocwright wheel merge` puts into it"
    metadata = f"Metadata-Version: 2.1\nName: {own.name}\nVersion: {own.version}\nSummary: {summary}\n"
    added = [
        WheelFile(path=f"{folder}/METADATA", content=metadata.encode()),
        WheelFile(
            path=f"{folder}/WHEEL", content=walk.headers().replaced("Generator", ["rocwright"]).as_bytes()
        ),
        WheelFile(
            path=f"{folder}/{NAME}", content=as_bytes(CodeManifest(record=manifest.record, target=target))
        ),
    ]
    path = out / own.file_name
    write_wheel(path, [*code, *added], epoch=manifest.epoch)
    return Piece(path=path, target=target, size=path.stat().st_size, code_objects=len(code))
