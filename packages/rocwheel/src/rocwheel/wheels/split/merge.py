"""The pieces of a wheel put together again, for all targets or for some."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from rocbase.errors import CheckError, InputError
from rocwheel.wheels.archive import open_wheel
from rocwheel.wheels.choose import Target
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel.wheels.metadata import RECORD, RecordRow, dist_info_folder, parse_name
from rocwheel.wheels.retitle import named, retitled
from rocwheel.wheels.scratch import Scratch, scratch
from rocwheel.wheels.slim.wheel import slim_version
from rocwheel.wheels.source import ByteSource
from rocwheel.wheels.split.library import is_exact, put_together
from rocwheel.wheels.split.manifest import (
    LARGEST,
    NAME,
    Neutral,
    SplitLibrary,
    code_path,
    identity,
    read_code,
    read_neutral,
)
from rocwheel.wheels.split.wheel import code_folder
from rocwheel.wheels.write import WheelFile, write_wheel

_OWN = NAME.removesuffix(".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The wheel that was written, and for which targets; `exact`: it is the original in its one form."""

    path: Path
    size: int
    targets: tuple[str, ...]
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _MergeInput:
    """The pieces: the neutral wheel's manifest, folder and files, and the files of the others by target."""

    manifest: Neutral
    folder: str
    neutral: Mapping[str, WheelFile]
    code: Mapping[str, Mapping[str, WheelFile]]


def merge_wheels(
    paths: Sequence[Path], out: Path, *, tell: Callable[[str], None] = lambda text: None
) -> Merged:
    """Write the wheel that the pieces `paths` make into the folder `out`, or to `out`.

    With the wheels of all targets it is the original one in its one form, to the byte, unless bundles were
    compressed; with some it is what slim makes of it. `tell` gets the name of each library.
    Raises InputError for pieces that do not belong together, CheckError for such that were changed.
    """
    with ExitStack() as stack:
        pieces = _read_pieces([(path, stack.enter_context(open_wheel(path))) for path in paths])
        manifest = pieces.manifest
        every = set(manifest.targets) == pieces.code.keys()
        name = parse_name(manifest.wheel)
        version = name.version
        if not every:
            version = slim_version(
                version, [Target(gpu) for gpu in sorted(pieces.code)], set(machines().values())
            )
        new_name = named(name, version)
        target = out if out.suffix == ".whl" else out / new_name
        if target.name != new_name:
            raise InputError(
                f"the merged wheel is called {new_name}",
                cause=f"{target.name} would contradict its own metadata, and pip would refuse to install it",
                next_step=f"give the folder: -o {target.parent}",
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        results = stack.enter_context(scratch(target.parent))
        files = list(_files(pieces, results, tell))
        exact = every and all(map(is_exact, manifest.libraries))
        write_wheel(
            target,
            files if every else retitled(files, version),
            epoch=manifest.epoch,
            approve=_as_it_was(manifest) if exact else None,
        )
    return Merged(path=target, size=target.stat().st_size, targets=tuple(sorted(pieces.code)), exact=exact)


def _read_pieces(wheels: Sequence[tuple[Path, Sequence[WheelFile]]]) -> _MergeInput:
    """The pieces told apart, and seen to be of one wheel. Raises InputError where they are not."""
    neutral: list[tuple[Path, Neutral, str, dict[str, WheelFile]]] = []
    code: dict[str, tuple[Path, str, dict[str, WheelFile]]] = {}
    for path, files in wheels:
        by_path = {file.path: file for file in files}
        folder = dist_info_folder(by_path)
        manifest = _manifest(path, by_path.get(f"{folder}/{NAME}"))
        if f"{folder}/{_OWN}/METADATA" in by_path:
            neutral.append((path, read_neutral(manifest, str(path)), folder, by_path))
            continue
        piece = read_code(manifest, str(path))
        if piece.target in code:
            raise InputError(
                f"two wheels are for {piece.target}",
                cause="one was given twice, or they come from two builds",
                next_step=f"leave out {path} or {code[piece.target][0]}",
            )
        code[piece.target] = path, piece.record, by_path
    if len(neutral) != 1 or not code:
        raise InputError(
            f"{len(neutral)} neutral wheels and {len(code)} with code were given",
            cause="merging takes one neutral wheel and at least one with code",
            next_step="give the files that `rocwheel split` wrote for one wheel",
        )
    ((_, manifest_read, folder, files_of_neutral),) = neutral
    for target, (path, record, _) in code.items():
        if record != manifest_read.record or target not in manifest_read.targets:
            raise InputError(
                f"{path.name} is not a piece of {manifest_read.wheel}",
                cause="it was split from another build",
                next_step="give only the pieces of one wheel",
            )
    return _MergeInput(
        manifest=manifest_read,
        folder=folder,
        neutral=files_of_neutral,
        code={target: files for target, (_, _, files) in code.items()},
    )


def _manifest(path: Path, file: WheelFile | None) -> bytes:
    if file is None or file.size > LARGEST:
        raise InputError(
            f"{path.name} is not a piece of a wheel",
            cause=f"it has no {NAME}" if file is None else f"its {NAME} has more than {LARGEST:,} bytes",
            next_step="give files that `rocwheel split` wrote",
        )
    return file.read(LARGEST)


def _files(pieces: _MergeInput, results: Scratch, tell: Callable[[str], None]) -> Iterator[WheelFile]:
    """The files of the merged wheel, under the original version."""
    manifest, own = pieces.manifest, pieces.folder
    libraries = {library.path: library for library in manifest.libraries}
    data = tuple(folder.removesuffix(".dist-info") + ".data/" for folder in (own, manifest.folder))
    for path, file in pieces.neutral.items():
        if path == f"{own}/METADATA":
            original = pieces.neutral[f"{own}/{_OWN}/METADATA"]
            yield replace(original, path=f"{manifest.folder}/METADATA")
        elif path.startswith(f"{own}/{_OWN}/") or path in (f"{own}/{NAME}", f"{own}/{RECORD}"):
            continue
        elif path.startswith(f"{own}/"):
            yield replace(file, path=f"{manifest.folder}/{path.removeprefix(f'{own}/')}")
        else:
            real = data[1] + path.removeprefix(data[0]) if path.startswith(data[0]) else path
            content = file.content
            if real in libraries:
                tell(real)
                content = _library(pieces, libraries[real], file, results)
            yield replace(file, path=real, content=content)
    for entry in manifest.whole:
        if entry.target in pieces.code:
            yield _piece_file(pieces.code[entry.target], entry.path, entry.target)


def _library(pieces: _MergeInput, library: SplitLibrary, neutral: WheelFile, results: Scratch) -> ByteSource:
    retained = pieces.neutral.get(_moved(library.kept, pieces))
    if retained is None:
        raise _changed(library.kept)
    name = parse_name(pieces.manifest.wheel)
    code = {}
    for index, bundle in enumerate(library.bundles):
        for entry in bundle.entries:
            files = pieces.code.get(entry.target)
            if files is None:
                continue
            path = code_path(code_folder(name, entry.target), library.path, index, entry.id)
            file = _piece_file(files, path, entry.target)
            if (row := file.row()).sha256 != entry.sha256 or row.size != entry.size:
                raise _changed(path)
            code[index, entry.id] = _stored(file, results)
    return put_together(library, _stored(neutral, results), _stored(retained, results), code, results)


def _moved(path: str, pieces: _MergeInput) -> str:
    return pieces.folder + path.removeprefix(pieces.manifest.folder)


def _stored(file: WheelFile, results: Scratch) -> ByteSource:
    part = results.put(file.pieces())
    return results.window(part.offset, part.size)


def _piece_file(files: Mapping[str, WheelFile], path: str, target: str) -> WheelFile:
    file = files.get(path)
    if file is None:
        raise _changed(f"{path}, of the wheel for {target},")
    return file


def _as_it_was(manifest: Neutral) -> Callable[[Sequence[RecordRow]], None]:
    def approve(rows: Sequence[RecordRow]) -> None:
        if identity(rows) != manifest.record:
            raise _changed(manifest.wheel)

    return approve


def _changed(subject: str) -> CheckError:
    return CheckError(
        f"{subject} has changed since the split",
        cause="one of the pieces is damaged, or was changed",
        next_step="get fresh copies of the pieces, or split the wheel again",
    )
