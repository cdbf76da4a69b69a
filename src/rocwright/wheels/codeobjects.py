"""GPU code objects in wheels, archives, folders and files, and whether they are exactly those asked for."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from rocwright.errors import CheckError, InputError, RocwrightError
from rocwright.wheels import bundle, elf
from rocwright.wheels.streams import CHUNK, Budget, Metered, Seekable, Window

SECTION = ".hip_fatbin"
ZIP_MAGIC = b"PK\x03\x04"
TAR_SUFFIXES = (".tar.gz", ".tgz")
HEAD = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeObject:
    """Machine code for one GPU target.

    `path` is the file that holds it, seen from the wheel, archive or folder; `index` counts that file's
    bundles from 0 and is None for a file that is itself one code object. `features` are sorted:
    ("sramecc+", "xnack-"). `size` is in bytes, unpacked.
    """

    path: str
    target: str
    features: tuple[str, ...]
    size: int
    sha256: str
    index: int | None

    @property
    def target_id(self) -> str:
        """As compilers take it: gfx90a:sramecc+:xnack-."""
        return ":".join((self.target, *self.features))


def code_objects(path: Path) -> list[CodeObject]:
    """Every code object in a wheel or .tar.gz (not unpacked as a whole), under a folder, or in one file.

    Raises InputError where `path` cannot be read, CheckError where something in it is damaged.
    """
    try:
        if path.is_dir():
            return [found for name, file in _files_under(path) for found in _in_path(file, name)]
        return list(_in_path(path, path.name))
    except RocwrightError:
        raise
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror or error}",
            cause="it is not there, is no file or folder, or this user may not read it",
            next_step="check the path and its rights",
            subject=str(path),
        ) from error


def check_targets(path: Path, wanted: Sequence[str]) -> list[str]:
    """What keeps `path` from holding code for exactly the targets `wanted`; nothing where it does.

    Every bundle must hold each target and no other. `wanted` names targets as compilers take them,
    with features where those are fixed: gfx1151, gfx90a:xnack-.
    """
    asked = {_normal(target) for target in wanted}
    found = code_objects(path)
    if not found:
        return [f"{path.name} holds no GPU code; wanted: {', '.join(sorted(asked))}"] if asked else []
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


def _files_under(folder: Path) -> Iterator[tuple[str, Path]]:
    """Regular files in a fixed order; links are left out, since what they name is listed or lies outside."""
    for parent, folders, names in os.walk(folder, onerror=_raise):
        folders.sort()
        for name in sorted(names):
            file = Path(parent, name)
            if file.is_file() and not file.is_symlink():
                yield str(file.relative_to(folder)), file


def _raise(error: OSError) -> None:
    raise error


def _in_path(path: Path, name: str) -> Iterator[CodeObject]:
    if not path.is_file():
        raise InputError(
            f"{path} is no file or folder",
            cause="it is not there, or is a device or socket",
            next_step="check the path",
            subject=str(path),
        )
    budget = Budget.for_file(path.stat().st_size, name)
    with path.open("rb") as file:
        head = file.read(HEAD)
        if head.startswith(ZIP_MAGIC) or path.suffix == ".whl":
            yield from _in_zip(file, name, budget)
        elif name.endswith(TAR_SUFFIXES):
            yield from _in_tar(file, name, budget)
        else:
            yield from _in_file(Metered(file, budget), head, name, budget)


def _in_zip(file: BinaryIO, name: str, budget: Budget) -> Iterator[CodeObject]:
    try:
        with zipfile.ZipFile(file) as archive:
            for info in sorted(archive.infolist(), key=lambda info: info.filename):
                if info.is_dir():
                    continue
                with archive.open(info) as member:
                    head = member.read(HEAD)
                budget.spend(len(head))
                if not _may_hold_code(head):
                    continue

                def reopen(info: zipfile.ZipInfo = info) -> BinaryIO:
                    return cast("BinaryIO", archive.open(info))

                with Seekable(reopen, info.file_size, budget) as stream:
                    yield from _in_file(stream, head, info.filename, budget)
    except RocwrightError:
        raise
    except Exception as error:  # damaged zips raise errors of many kinds, and so do their unpackers
        raise CheckError(
            f"cannot read {name} as a wheel: {error or type(error).__name__}",
            cause="the file is cut short, damaged, encrypted, or no zip",
            next_step="build it or get it again",
            subject=name,
        ) from error


def _in_tar(file: BinaryIO, name: str, budget: Budget) -> Iterator[CodeObject]:
    """In one pass: going back in gzip means starting over, so a member is put aside to be read."""
    file.seek(0)
    try:
        with gzip.GzipFile(fileobj=file) as unpacked, tempfile.TemporaryFile() as aside:
            metered = cast("BinaryIO", Metered(cast("BinaryIO", unpacked), budget))
            with tarfile.open(fileobj=metered, mode="r|", bufsize=CHUNK) as archive:
                for info in archive:
                    member = archive.extractfile(info) if info.isfile() else None
                    head = member.read(HEAD) if member is not None else b""
                    if member is None or not _may_hold_code(head):
                        continue
                    aside.seek(0)
                    aside.truncate()
                    aside.write(head)
                    shutil.copyfileobj(member, aside, CHUNK)
                    yield from _in_file(Metered(aside, budget), head, info.name.removeprefix("./"), budget)
    except RocwrightError:
        raise
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise CheckError(
            f"cannot read {name} as an archive: {error or type(error).__name__}",
            cause="the file is cut short, damaged, or no .tar.gz",
            next_step="build it or get it again",
            subject=name,
        ) from error


def _may_hold_code(head: bytes) -> bool:
    return head.startswith((elf.MAGIC, bundle.MAGIC, bundle.COMPRESSED_MAGIC))


def _in_file(file: io.RawIOBase, head: bytes, name: str, budget: Budget) -> Iterator[CodeObject]:
    size = file.seek(0, io.SEEK_END)
    if elf.is_gpu_elf(head):
        yield _lone(file, head, size, name)
        return
    if head.startswith(elf.MAGIC):
        spans = elf.sections(file, SECTION, name)
    elif head.startswith((bundle.MAGIC, bundle.COMPRESSED_MAGIC)):
        spans = [(0, size)]
    else:
        return
    index = 0
    for begin, length in spans:
        for entries in bundle.read_bundles(file, begin, begin + length, budget, name):
            for entry in entries:
                yield CodeObject(
                    path=name,
                    target=entry.target,
                    features=entry.features,
                    size=entry.size,
                    sha256=entry.sha256,
                    index=index,
                )
            index += 1


def _lone(file: io.RawIOBase, head: bytes, size: int, name: str) -> CodeObject:
    header = elf.gpu_header(head, name)
    digest = hashlib.sha256()
    window = Window(file, 0, size)
    while data := window.read(CHUNK):
        digest.update(data)
    return CodeObject(
        path=name,
        target=header.target,
        features=header.features,
        size=size,
        sha256=digest.hexdigest(),
        index=None,
    )
