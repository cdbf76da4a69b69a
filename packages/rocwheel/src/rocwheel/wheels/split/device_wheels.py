"""A wheel taken apart as AMD does it: its libraries without code, and a wheel of kpack archives for each GPU.

They are installed together as they are: the archives come to lie where the libraries look for them.
Source: ROCm/rocm-systems, shared/kpack/python/rocm_kpack/wheel_splitter.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode import kpack_writer
from rocwheel.wheels.devicecode.fatbin import FatBinary
from rocwheel.wheels.devicecode.kpack_reference import FOLDER, PLACEHOLDER, Reference
from rocwheel.wheels.kpacked import installed
from rocwheel.wheels.metadata import Headers, WheelName, parse_name
from rocwheel.wheels.parts import pieces
from rocwheel.wheels.source import ByteSource
from rocwheel.wheels.split.kpacked import into_archives, reason_to_stay
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
