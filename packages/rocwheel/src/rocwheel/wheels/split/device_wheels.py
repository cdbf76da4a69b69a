"""A wheel taken apart as AMD does it: its libraries without code, and a wheel of kpack archives for each GPU.

They are installed together as they are: the archives come to lie where the libraries look for them.
Source: ROCm/rocm-systems, shared/kpack/python/rocm_kpack/wheel_splitter.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from rocwheel.errors import CheckError
from rocwheel.wheels.archive import open_wheel
from rocwheel.wheels.devicecode import kpack_writer
from rocwheel.wheels.devicecode.bundle import is_bundle
from rocwheel.wheels.devicecode.fatbin import FatBinary, fat_binary, may_hold_code
from rocwheel.wheels.devicecode.kpack_reference import FOLDER, PLACEHOLDER, Reference
from rocwheel.wheels.devicecode.loose import loose
from rocwheel.wheels.kpacked import installed
from rocwheel.wheels.metadata import RECORD, Headers, WheelName, dist_info_folder, parse_name
from rocwheel.wheels.parts import pieces
from rocwheel.wheels.scratch import Scratch, scratch
from rocwheel.wheels.source import Source
from rocwheel.wheels.split.kpacked import into_archives, reason_to_stay
from rocwheel.wheels.split.wheel import HEAD, Piece, Split, reason_to_leave
from rocwheel.wheels.write import File, in_order, write_wheel

HOST = "host"
"""What stands for the target of the wheel with the libraries."""


@dataclass(slots=True)
class _Pieces:
    """What is found: files of the host wheel and of each target's; code by folder of archives and target."""

    host: list[File] = field(default_factory=list)
    device: defaultdict[str, list[File]] = field(default_factory=lambda: defaultdict(list))
    code: dict[str, dict[str, list[kpack_writer.Code]]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)


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
    with open_wheel(path) as files, scratch(out) as originals, scratch(out) as results:
        folder = dist_info_folder(file.path for file in files)
        found = _Pieces()
        for file in in_order(files):
            if file.path != f"{folder}/{RECORD}":
                _sort(file, name, found, originals, results, tell)
        targets = sorted(
            {*found.device, *(one.partition(":")[0] for by in found.code.values() for one in by)}
        )
        if not targets:
            raise CheckError(
                f"{path.name} has no GPU code that can be split off",
                cause="it is a host wheel already" if not found.left else "its code cannot be moved",
                next_step="use it as it is; `rocwheel inspect` shows what it contains",
                detail="\n".join(f"{one}: {why}" for one, why in found.left.items()),
            )
        written = [_write_host(out, name, folder, found.host, targets, epoch)]
        wheel = next(Headers(file.read()) for file in files if file.path == f"{folder}/WHEEL")
        for target in targets:
            tell(target)
            written.append(_write_device(out, name, wheel, target, found, results, epoch))
    return Split(pieces=tuple(written), left=found.left)


def _sort(
    file: File,
    name: WheelName,
    found: _Pieces,
    originals: Scratch,
    results: Scratch,
    tell: Callable[[str], None],
) -> None:
    """Put a file, or its parts, where they belong."""
    head = next(iter(file.pieces()), b"")[:HEAD]
    told = loose(file.path)
    if told and len(told.targets) == 1:
        found.device[min(told.targets)].append(file)
        return
    if not may_hold_code(head):
        found.host.append(file)
        return
    part = originals.put(file.pieces())
    source = originals.window(part.offset, part.size)
    fat = fat_binary(source)
    targets = _targets(fat)
    if fat and len(targets) == 1 and (fat.lone or fat.archive or is_bundle(head)):
        found.device[targets.pop()].append(file)
    elif not fat or not targets:
        found.host.append(file)
    elif why := reason_to_leave(source, head) or _misplaced(file.path) or reason_to_stay(fat):
        found.left[file.path] = why
        found.host.append(file)
    else:
        tell(file.path)
        found.host.append(replace(file, content=_taken_apart(source, fat, file.path, name, found, results)))


def _targets(fat: FatBinary | None) -> set[str]:
    if fat is None:
        return set()
    lone = {fat.lone.target} if fat.lone else set()
    packed = {one.target for one in fat.archive.code} if fat.archive else set()
    return lone | packed | {entry.target for bundle in fat.bundles for entry in bundle.code}


def _misplaced(path: str) -> str:
    """Why archives cannot lie beside a file; "" where they can."""
    return "it is not installed among the packages" if ".data/" in installed(path) else ""


def _taken_apart(
    source: Source, fat: FatBinary, path: str, name: WheelName, found: _Pieces, results: Scratch
) -> Source:
    """What is left of a library; its code is put to that of its folder of archives."""
    place = PurePosixPath(installed(path))
    top = place.parts[0] if len(place.parts) > 1 else ""
    inner = place.relative_to(top) if top else place
    pattern = f"{FOLDER}/{_group(name)}_{PLACEHOLDER}.kpack"
    reference = Reference(name=inner.as_posix(), search=("../" * (len(inner.parts) - 1) + pattern,))
    taken = into_archives(source, fat, reference, results)
    for target, code in taken.code.items():
        found.code.setdefault(top, {}).setdefault(target, []).extend(code)
    kept = results.put(pieces(taken.content))
    return results.window(kept.offset, kept.size)


def _group(name: WheelName) -> str:
    return name.name.replace("-", "_").lower()


def _device(name: WheelName, target: str) -> str:
    """The project of the wheel with a target's code."""
    return f"{name.name}-device-{target}".replace("_", "-").lower()


def _write_host(
    out: Path, name: WheelName, folder: str, files: Sequence[File], targets: Sequence[str], epoch: int
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


def _write_device(
    out: Path, name: WheelName, wheel: Headers, target: str, found: _Pieces, results: Scratch, epoch: int
) -> Piece:
    project = _device(name, target)
    own = replace(name, name=project.replace("-", "_"))
    folder = f"{own.name}-{own.version}.dist-info"
    files = list(found.device[target])
    count = len(files)
    for top, by_target in found.code.items():
        for target_id, code in sorted(by_target.items()):
            if target_id.partition(":")[0] == target:
                place = f"{FOLDER}/{_group(name)}_{target_id}.kpack"
                content = kpack_writer.archive(code, _group(name), results)
                files.append(File(path=f"{top}/{place}" if top else place, content=content))
                count += len(code)
    metadata = (
        f"Metadata-Version: 2.1\nName: {project}\nVersion: {name.version}\n"
        f"Summary: Code for {target} of {name.name} {name.version}, in kpack archives\n"
        f"Requires-Dist: {name.name} == {name.version}\n"
    )
    files += [
        File(path=f"{folder}/METADATA", content=metadata.encode()),
        File(path=f"{folder}/WHEEL", content=wheel.replaced("Generator", ["rocwheel"]).as_bytes()),
    ]
    path = out / own.file_name
    write_wheel(path, files, epoch=epoch)
    return Piece(path=path, target=target, size=path.stat().st_size, code_objects=count)
